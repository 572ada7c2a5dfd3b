import type { InvoiceStatus } from '../domain/invoice.ts';
import type { LookupInvoice } from '../domain/lookup.ts';
import { microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { LedgerFacts } from '../domain/transaction-facts.ts';
import type { AccountHex } from '../tron/address.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { stands } from './standing.ts';
import { type Row, statement } from './statement.ts';

/** An invoice that a payer asks about, and what our books say of the transaction as far as it is tied to this invoice. */
export type FoundLookup = { network: Network; invoice: LookupInvoice; ledger: LedgerFacts | null };

const columns = {
  network: 'text',
  status: 'text',
  created_at: 'timestamptz',
  requested_micro: 'int8',
  payable_micro: 'int8',
  account: 'text',
  address: 'address',
  solid_number: 'int8?',
  head_number: 'int8?',
  head_time: 'timestamptz?',
  paying_tx_id: 'text?',
  kind: 'text?',
  block_number: 'int8?',
  block_time: 'timestamptz?',
} as const;

// One statement, so that the cursor and what is recorded up to it are of one moment. Rows of a transaction that are tied to
// another invoice, or to none, are left out: answers must not depend on them. `offset 0` keeps PostgreSQL from reading all
// transfers of the project in place of the few of the transaction, as it does while it believes the table to be small.
const select = statement(
  'lookup-select',
  columns,
  `select i.network, i.status, i.created_at, i.requested_micro, i.payable_micro, encode(a.account, 'hex') as account, ${addressColumn('a')} as address,
     c.solid_number, coalesce(h.number, c.solid_number) as head_number, coalesce(h.block_time, c.solid_time) as head_time,
     coalesce(encode(paid.tx_id, 'hex'), first.tx_id) as paying_tx_id, t.kind, t.block_number, t.block_time
   from invoices i
   join addresses a on a.id = i.address_id
   left join chain_cursors c on c.network = i.network
   left join lateral (
     select number, block_time from head_blocks where network = i.network order by number desc limit 1) h on true
   left join transfers paid on paid.id = i.paid_transfer_id
   left join lateral (
     select encode(s.tx_id, 'hex') as tx_id from sightings s
     where s.project_id = i.project_id and s.invoice_id = i.id and i.status = 'CONFIRMING'
     order by s.block_number, s.position, s.tx_id, s.log_index limit 1) first on true
   left join lateral (
     (select t.kind, t.block_number, t.block_time
      from (
        select project_id, invoice_id, kind, block_number, block_time from transfers r
        where network = i.network and tx_id = decode($2, 'hex') and ${stands('r')} offset 0) t
      where t.project_id = i.project_id and t.invoice_id = i.id
      order by t.kind = 'matched' desc limit 1)
     union all
     (select 'sighted', s.block_number, b.block_time
      from sightings s join head_blocks b on b.network = s.network and b.number = s.block_number
      where s.network = i.network and s.tx_id = decode($2, 'hex')
        and s.project_id = i.project_id and s.invoice_id = i.id
      limit 1)
     limit 1) t on true
   where i.checkout_token = $1`,
);

/** By checkout token; `txId` is 64 hex characters, or `null` where the payer named none. `null`: there is no such link. */
export async function findLookup(db: Sql, checkoutToken: string, txId: string | null): Promise<FoundLookup | null> {
  const [row] = await db.run(select, [checkoutToken, txId]);
  if (row === undefined) return null;
  return {
    network: row.network as Network,
    invoice: {
      account: row.account as AccountHex,
      requestedMicro: microUsdt(row.requested_micro),
      payableMicro: microUsdt(row.payable_micro),
      status: row.status as InvoiceStatus,
      createdAt: row.created_at,
      payingTxId: row.paying_tx_id,
      solidNumber: row.solid_number === null ? null : Number(row.solid_number),
      head: toHead(row),
    },
    ledger: txId === null ? null : toLedger(row, txId),
  };
}

function toHead({ head_number: number, head_time: time }: Row<typeof columns>): LookupInvoice['head'] {
  return number === null || time === null ? null : { number: Number(number), time };
}

function toLedger(row: Row<typeof columns>, txId: string): LedgerFacts | null {
  const { kind, block_number, block_time: blockTime } = row;
  if (kind === null || block_number === null || blockTime === null) return null;
  const inBlock = { blockNumber: Number(block_number), blockTime };
  if (kind !== 'sighted') return { kind: kind === 'matched' ? 'matched' : 'duplicate', ...inBlock };
  return { kind, ...inBlock, txId };
}
