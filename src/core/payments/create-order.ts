import type { Network } from '../domain/network.ts';
import { type CreateDeps, type Created, type CreateInput, createInvoice, findEarlier } from './create-invoice.ts';
import type { Pool, Relief } from './derive-addresses.ts';
import type { LimitReached, UnpaidGate } from './unpaid-gate.ts';
import type { Unwatched, WatchedNetworks } from './watched-networks.ts';

export type OrderDeps = CreateDeps & { gate: UnpaidGate; relief: Relief; watched: WatchedNetworks };

export type Ordered =
  | Created
  | ({ kind: 'limited' } & LimitReached)
  | { kind: 'unwatched'; network: Network; why: Unwatched };

/** A round is repeated only if other requests have used up the free amounts that it had found. */
const MAX_ROUNDS = 50;
/** If amounts are free but no invoice can use them, they belong to addresses that someone inserted or changed in the database. */
const MAX_UNCHANGED = 2;

/**
 * Creates an invoice within the project's limits on unpaid invoices. If no payable amount is free, it derives addresses first, if possible.
 * No invoice is created on a network that was never watched. A repeated request always succeeds, because it creates nothing.
 */
export async function createOrder(deps: OrderDeps, input: CreateInput): Promise<Ordered> {
  const { network } = input;
  const why = await deps.watched.whyNot(network);
  if (why !== null) return (await findEarlier(deps, input)) ?? { kind: 'unwatched', network, why };
  const entered = await deps.gate.enter(input.projectId);
  if (entered.kind === 'limited') return (await findEarlier(deps, input)) ?? entered;
  try {
    let room: Pool | null = null;
    for (let round = 1, unchanged = 0; ; round += 1) {
      const created = await createInvoice(deps, input);
      if (created.kind === 'created') deps.relief.noteCreated(input);
      if (created.kind !== 'amount-unavailable' || round === MAX_ROUNDS) return created;
      const before: Pool | null = room;
      room = await deps.relief.relieve(input);
      unchanged = before !== null && room?.total === before.total && room.free === before.free ? unchanged + 1 : 0;
      if (room === null || unchanged === MAX_UNCHANGED) return created;
    }
  } finally {
    entered.leave();
  }
}
