import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { answerOf, rowsOf } from '../../store/db/rows-of.ts';
import { count, maybe, maybeText, type Row, text } from '../../store/db/statement.ts';
import type { Freeze } from '../../store/ledger/addresses.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';

const columns = {
  id: 'uuid',
  address: 'address',
  policy: text<Policy>(),
  position: 'int4',
  createdAt: 'timestamptz',
  retiredAt: 'timestamptz?',
  barredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
  derivationIndex: 'int4?',
  check: maybe({ chainMicro: 'numeric', expectedMicro: 'numeric', block: 'int8', at: 'timestamptz' }),
} as const;

/** `check`: the last comparison with the chain; `null` before the first one. */
export type BalanceRow = Row<typeof columns>;

/** The addresses of a project by position, from the first after `after` on. */
export const listWithChecks = rowsOf(
  'balances-list',
  columns,
  `select a.id, ${addressColumn('a')} as address, a.policy, a.position, a.created_at, a.retired_at, a.barred_at, a.freeze_state, a.derivation_index,
     b.balance_micro as check_chain_micro, b.expected_micro as check_expected_micro, b.checked_block as check_block, b.checked_at as check_at
   from addresses a left join balance_checks b on b.address_id = a.id
   where a.project_id = $1 and a.position > $2 order by a.position limit $3`,
  (projectId: string, after: number, limit: number) => [projectId, after, limit],
);

/**
 * What came to and left each of these addresses (UUIDs) above the height of their last comparison, or ever where there is none. What is
 * corrected below that height counts from the next comparison on.
 */
export const sumSinceCheck = answerOf(
  'balances-sum',
  { id: 'uuid', micro: 'numeric' },
  `select a.id, (select coalesce(sum(t.amount_micro), 0) from transfers t
       where t.address_id = a.id and t.block_number > coalesce(b.checked_block, -1) and ${stands('t')})
     - (select coalesce(sum(o.amount_micro), 0) from outgoing_transfers o
       where o.address_id = a.id and o.block_number > coalesce(b.checked_block, -1) and ${outgoingStands('o')}) as micro
   from addresses a left join balance_checks b on b.address_id = a.id where a.id = any($1::uuid[])`,
  (ids: readonly string[]) => [ids],
  (rows) => new Map(rows.map(({ id, micro }) => [id, micro])),
);

/** Counting them all helps nobody. */
export const MAX_OPEN_INVOICES = 10_000;

/** How many invoices of an address can still be paid in time or are being paid, `MAX_OPEN_INVOICES` at most. Few of a network are open. */
export const countOpenInvoices = answerOf(
  'balances-open-invoices',
  { count },
  `select count(*) as count from (
     select i.id from invoices i where i.network = $2 and i.status = 'PENDING' and i.address_id = $1
     union
     select i.id from sightings s join invoices i on i.project_id = s.project_id and i.id = s.invoice_id
     where s.network = $2 and i.address_id = $1 and i.status = 'CONFIRMING'
     limit ${MAX_OPEN_INVOICES}) open`,
  (addressId: string, network: Network) => [addressId, network],
  ([row]) => row?.count ?? 0,
);
