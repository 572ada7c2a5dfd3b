import { createHash } from 'node:crypto';
import type { AccountXpub } from '@quittance/tron/account-xpub';
import type { TronAddress } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { answerOf, attemptOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_ADMIN_KEY, SEALED_PERSON } from '../db/sealed-tables.ts';
import { isAsSealed, listColumns, maybeText, type Row, text } from '../db/statement.ts';

const columns = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  kind: text<'add' | 'derive'>(),
  policy: text<Policy>(),
  addresses: 'text[]',
  firstIndex: 'int4',
  indexes: 'int8[]?',
  xpub: maybeText<AccountXpub>(),
  keyFirstIndex: 'int4?',
  autoDeriveLimit: 'int4?',
  actorKind: text<'console' | 'admin'>(),
  actorId: 'uuid',
  actedBy: 'text',
  origin: 'text?',
  proposedAt: 'timestamptz',
  dueAt: 'timestamptz',
  state: text<'waiting' | 'applied' | 'withdrawn' | 'failed'>(),
  endedAt: 'timestamptz?',
  endedBy: 'text?',
  reason: 'text?',
} as const;
const COLUMNS = listColumns(columns);

/** The account key that the addresses are derived from, and the settings that a new key is stored with. */
type Derivation = { xpub: AccountXpub; keyFirstIndex: number; autoDeriveLimit: number; indexes: readonly number[] };

/**
 * A pending or finished addition of addresses. `firstIndex` is the ledger's value at the time of the proposal; a restore increases it.
 * `derivation` is `null` if the addresses were given explicitly.
 */
export type AddressChange = Omit<
  Row<typeof columns>,
  'addresses' | 'kind' | 'indexes' | 'xpub' | 'keyFirstIndex' | 'autoDeriveLimit'
> & { addresses: readonly TronAddress[]; derivation: Derivation | null };

/** The addresses were parsed when the change was proposed, and never change afterwards. */
function readChange(row: Row<typeof columns>): AddressChange {
  const { kind: _, addresses, indexes, xpub, keyFirstIndex, autoDeriveLimit, ...change } = row;
  const isDerived = indexes !== null && xpub !== null && keyFirstIndex !== null && autoDeriveLimit !== null;
  return {
    ...change,
    addresses: addresses as TronAddress[],
    derivation: isDerived ? { xpub, keyFirstIndex, autoDeriveLimit, indexes: indexes.map(Number) } : null,
  };
}

type NewAddressChange = Omit<AddressChange, 'firstIndex' | 'state' | 'endedAt' | 'endedBy' | 'reason'>;

/** Stores a pending change. */
export const insertAddressChange = commandOf(
  'address-change-insert',
  `insert into address_changes (id, project_id, network, kind, policy, addresses, first_index, indexes, xpub, key_first_index,
     auto_derive_limit, actor_kind, actor_id, acted_by, origin, proposed_at, due_at)
   values ($1, $2, $3, $4, $5, $6, coalesce((select first_index from ledger_identity), 0), $7::int8[], $8, $9, $10, $11, $12, $13, $14,
     $15, $16)`,
  ({ derivation, ...change }: NewAddressChange) => [
    ...[change.id, change.projectId, change.network, derivation === null ? 'add' : 'derive', change.policy],
    ...[change.addresses, derivation?.indexes.map(BigInt) ?? null, derivation?.xpub ?? null],
    ...[derivation?.keyFirstIndex ?? null, derivation?.autoDeriveLimit ?? null],
    ...[change.actorKind, change.actorId, change.actedBy, change.origin],
    ...[new Date(change.proposedAt), new Date(change.dueAt)],
  ],
);

/**
 * Returns a digest of the whole change. The audit log contains the digest under a seal, so that a change that someone inserted directly
 * into the table is ignored.
 */
export function digestOfChange({ state: _, endedAt, endedBy, reason, ...change }: AddressChange): string {
  return createHash('sha256')
    .update(JSON.stringify(Object.entries(change).sort()))
    .digest('hex');
}

const readChanges = (rows: Row<typeof columns>[]) => rows.map(readChange);

export const findAddressChange = answerOf(
  'address-change-find',
  columns,
  `select ${COLUMNS} from address_changes where id = $1`,
  (id: string) => [id],
  ([row]) => (row === undefined ? null : readChange(row)),
);

/** Returns a project's pending changes and the 20 most recently ended ones, newest first. */
export const findAddressChanges = answerOf(
  'address-change-list',
  columns,
  `(select ${COLUMNS} from address_changes where project_id = $1 and state = 'waiting')
   union all
   (select ${COLUMNS} from address_changes where project_id = $1 and state <> 'waiting' order by id desc limit 20)
   order by id desc`,
  (projectId: string) => [projectId],
  readChanges,
);

/** Returns a project's pending changes, oldest first. */
export const findWaitingChanges = answerOf(
  'address-change-waiting',
  columns,
  `select ${COLUMNS} from address_changes where project_id = $1 and state = 'waiting' order by id`,
  (projectId: string) => [projectId],
  readChanges,
);

/** Returns a network's oldest 1,000 pending changes, without their addresses. */
export const listWaitingOfNetwork = rowsOf(
  'address-change-waiting-of-network',
  { id: 'uuid', projectId: 'uuid' },
  `select id, project_id from address_changes where network = $1 and state = 'waiting' order by due_at, id limit 1000`,
  (network: Network) => [network],
);

/** Returns the 100 changes of a network that have been due longest. */
export const findDueChanges = answerOf(
  'address-change-due',
  { id: 'uuid' },
  `select id from address_changes where network = $1 and state = 'waiting' and due_at <= $2 order by due_at, id limit 100`,
  (network: Network, now: UnixMs) => [network, new Date(now)],
  (rows) => rows.map(({ id }) => id),
);

export type AddressChangeEnd = { state: 'applied' | 'withdrawn' | 'failed'; at: UnixMs; by: string; reason?: string };

/** Ends a change. Returns `false` if the change has already ended. */
export const endAddressChange = attemptOf(
  'address-change-end',
  `update address_changes set state = $2, ended_at = $3, ended_by = $4, reason = $5 where id = $1 and state = 'waiting'`,
  (id: string, { state, at, by, reason }: AddressChangeEnd) => [id, state, new Date(at), by, reason ?? null],
);

const proposer = {
  isOwner: 'bool',
  isPersonSound: isAsSealed(SEALED_PERSON, { isOfOther: true }),
  isKeySound: isAsSealed(SEALED_ADMIN_KEY, { isOfOther: true }),
} as const;

/**
 * Whether the person who proposed a change is still an owner with a valid seal. If an API key proposed the change, that key must not be
 * revoked.
 */
export const isProposerOwner = answerOf(
  'address-change-proposer',
  proposer,
  `select num_nonnulls(p.id, k.id) > 0 as is_owner, case when p.id is not null then ${sealColumn(SEALED_PERSON, 'p.')} end as is_person_sound,
     case when k.id is not null then ${sealColumn(SEALED_ADMIN_KEY, 'k.')} end as is_key_sound
   from address_changes c
     left join people p on c.actor_kind = 'console' and p.id = c.actor_id and p.role = 'owner' and p.removed_at is null
     left join admin_keys k on c.actor_kind = 'admin' and k.id = c.actor_id and k.role = 'owner' and k.revoked_at is null
   where c.id = $1`,
  (id: string) => [id],
  ([row]) => row?.isOwner === true && row.isPersonSound !== false && row.isKeySound !== false,
);
