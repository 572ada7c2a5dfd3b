import type { AccountHex } from '@quittance/tron/address';
import type { Books } from '../../domain/books.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowsOf } from '../db/rows-of.ts';
import { count, maybe, maybeCount, maybeText, type Row, statement, text } from '../db/statement.ts';
import type { Freeze } from '../ledger/addresses.ts';
import { notAnnulled, outgoingNotAnnulled } from '../ledger/annulments.ts';

/** The statements that return addresses for balance checks. */
export const BALANCE_CHECKS = ['balance-check-due', 'balance-check-list'] as const;

const BOOKED = {
  id: 'uuid',
  projectId: 'uuid',
  account: text<AccountHex>(),
  address: 'address',
  opening: maybe({ block: count, micro: 'numeric' }),
  /** The greatest height at which the recorded movements matched the chain, or `null` before the first check. */
  goodBlock: maybeCount,
  freezeState: maybeText<Freeze>(),
  freezeBlock: maybeCount,
} as const;

/** An active or retired address of any project, with its opening: the balance and the height at its first check. */
export type BookedAddress = Row<typeof BOOKED>;

const SELECT = `select a.id, a.project_id, encode(a.account, 'hex') as account, ${addressColumn('a')} as address, b.opening_block, b.opening_micro,
     b.good_block, a.freeze_state, a.freeze_block
   from addresses a left join balance_checks b on b.address_id = a.id`;

const selectDue = statement(
  BALANCE_CHECKS[0],
  BOOKED,
  `${SELECT} where a.network = $1 and (b.address_id is null or b.due_at <= $2 or b.due_at > $2::timestamptz + interval '25 hours')
   order by b.due_at nulls first, a.id limit $3`,
);

/**
 * Returns addresses that were never checked or whose check is due, longest overdue first. If a check was postponed by more than a day, it's
 * due, because Quittance never postpones one that far. Addresses that fail their integrity check are left out, because they have their own
 * alarm.
 */
export function findDueAddresses(db: Sql, network: Network, now: UnixMs, limit: number): Promise<BookedAddress[]> {
  return db.run(selectDue, [network, new Date(now), limit], []);
}

/** Returns all of a network's addresses, oldest first. */
export const listBookedAddresses = rowsOf(
  BALANCE_CHECKS[1],
  BOOKED,
  `${SELECT} where a.network = $1 order by a.id limit $2`,
  (network: Network, limit: number) => [network, limit],
);

// An annulled transfer moved no money. An incoming transfer without a producer dates from before outgoing transfers were recorded. Below
// the opening, such a transfer is left out; otherwise all money that was sent away since then would seem to be missing.
const MOVEMENTS = `(
     select block_number, amount_micro as micro, producer is null as is_one_sided from transfers t
     where address_id = $1 and ${notAnnulled('t')}
     union all
     select block_number, -amount_micro, false from outgoing_transfers o
     where address_id = $1 and ${outgoingNotAnnulled('o')}) m`;

const before = statement(
  'balance-books-before',
  { micro: 'numeric', firstBlock: maybeCount },
  `select coalesce(sum(m.micro), 0) as micro, min(m.block_number) as first_block
   from ${MOVEMENTS} where m.block_number <= $2 and not m.is_one_sided`,
);

/** Returns the sum of an address's recorded movements up to a height, and the height at which they begin. */
export async function sumMovements(db: Sql, addressId: string, upTo: number): Promise<Row<typeof before.shape>> {
  const [row] = await db.run(before, [addressId, upTo]);
  if (row === undefined) throw new Error('the sum query returned no row');
  return row;
}

/**
 * Returns an address's recorded movements above `above` and up to `upTo`, by height. Movements below `summedUpTo` are combined into one
 * movement at that height.
 */
export const findMovements = rowsOf(
  'balance-books-since',
  { block: count, micro: 'numeric' },
  `select greatest(m.block_number, $3) as block, sum(m.micro) as micro
   from ${MOVEMENTS} where m.block_number > $2 and m.block_number <= $4 group by 1 order by 1`,
  (addressId: string, range: { above: number; summedUpTo: number; upTo: number }) => [
    addressId,
    range.above,
    range.summedUpTo,
    range.upTo,
  ],
);

type BalanceCheck = {
  opening: Books['opening'];
  goodBlock: number;
  checkedBlock: number;
  balanceMicro: bigint;
  expectedMicro: bigint;
  /** The asked node's origin. */
  node: string;
  checkedAt: UnixMs;
  dueAt: UnixMs;
};

/** Stores a check's result. The opening from the first check never changes. */
export const saveBalanceCheck = commandOf(
  'balance-check-upsert',
  `insert into balance_checks as b (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block,
     balance_micro, expected_micro, node, checked_at, due_at)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   on conflict (address_id) do update set
     good_block = greatest(b.good_block, excluded.good_block),
     checked_block = greatest(b.checked_block, excluded.checked_block),
     balance_micro = excluded.balance_micro, expected_micro = excluded.expected_micro, node = excluded.node,
     checked_at = excluded.checked_at, due_at = excluded.due_at`,
  (network: Network, { id, projectId }: Pick<BookedAddress, 'id' | 'projectId'>, check: BalanceCheck) => [
    id,
    projectId,
    network,
    check.opening.micro,
    check.opening.block,
    check.goodBlock,
    check.checkedBlock,
    check.balanceMicro,
    check.expectedMicro,
    check.node,
    new Date(check.checkedAt),
    new Date(check.dueAt),
  ],
);

/** Makes the checks of all of a network's addresses due, active or retired, for example after an incident. */
export const markChecksDue = commandOf(
  'balance-check-mark-due',
  'update balance_checks set due_at = least(due_at, checked_at) where network = $1',
  (network: Network) => [network],
);
