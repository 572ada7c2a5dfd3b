import { NETWORKS } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

/**
 * An addition of addresses that waits, or has ended. `derivationIndexes`: of each, from 0 on; `null` where they were given. `origin`: from where
 * it was proposed, for owners. `reason`: why it failed.
 */
export const AddressChangeView = Type.Object({
  changeId: Type.String(),
  projectId: Type.String(),
  network: Type.Enum([...NETWORKS]),
  state: Type.Enum(['waiting', 'applied', 'withdrawn', 'failed']),
  policy: Type.Enum([...POLICIES]),
  addresses: Type.Array(Type.String()),
  derivationIndexes: nullable(Type.Array(Type.Integer())),
  proposedBy: Type.Object({ kind: Type.Enum(['console', 'admin']), name: Type.String() }),
  origin: nullable(Type.String()),
  proposedAt: Time,
  dueAt: Time,
  endedAt: nullable(Time),
  endedBy: nullable(Type.String()),
  reason: nullable(Type.String()),
});
export type AddressChangeView = Static<typeof AddressChangeView>;

export const AddressChangeListView = Type.Object({ projectId: Type.String(), data: Type.Array(AddressChangeView) });
export type AddressChangeListView = Static<typeof AddressChangeListView>;

/** `passedOver`: addresses that the project got meanwhile. */
export const ConfirmedChangeView = Type.Object({
  change: AddressChangeView,
  added: Type.Array(Type.String()),
  passedOver: Type.Array(Type.String()),
});
export type ConfirmedChangeView = Static<typeof ConfirmedChangeView>;
