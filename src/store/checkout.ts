import { hadPayment, type InvoiceStatus } from '../domain/invoice.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import {
  JOIN_HEAD,
  JOIN_PAYING_TRANSFER,
  PAYING_TRANSFER_COLUMNS,
  type PayingTransfer,
  payingTransferColumns,
  toPayingTransfer,
} from './paying-transfer.ts';
import { stands } from './standing.ts';
import { type Row, statement } from './statement.ts';

/** At the commit that changes the status of an invoice its id is said here (migration 0005). */
export const INVOICES_CHANNEL = 'quittance_invoices';

/** What the merchant wants to be seen of him. `accent`: `#0a6549`. `logoId`: 32 hex characters. */
export type Brand = {
  name: string;
  supportContact: string | null;
  returnUrl: string | null;
  accent: string | null;
  logoId: string | null;
};

/** The newest examined block of a network. */
export type ChainHead = { number: number; time: UnixMs };

/** An invoice as its payer's page needs it. */
export type CheckoutInvoice = {
  id: string;
  network: Network;
  status: InvoiceStatus;
  checkoutToken: string;
  expiresAt: UnixMs;
  /** It waits again, because the block of its payment was orphaned. */
  hadPayment: boolean;
  requestedMicro: MicroUsdt;
  payableMicro: MicroUsdt;
  address: string;
  brand: Brand;
  /** Block 0 of the network, 64 hex characters, by which wallets on another one are told; `null` while it is not known. */
  genesisId: string | null;
  /** A second transfer of exactly its amount that nobody has dealt with yet, 64 hex characters; `null`: there is none. */
  secondTxId: string | null;
  /** `null` before the first block was examined. */
  head: ChainHead | null;
  /** Up to here blocks are irreversible and their transfers recorded. */
  solidNumber: number | null;
  transfer: PayingTransfer | null;
  /** It is `PAID`, and the chain denies the transfer: an operator took that back. */
  isDenied: boolean;
};

const columns = {
  id: 'uuid',
  network: 'text',
  status: 'text',
  checkout_token: 'text',
  expires_at: 'timestamptz',
  event_count: 'int4',
  requested_micro: 'int8',
  payable_micro: 'int8',
  address: 'address',
  project_name: 'text',
  support_contact: 'text?',
  return_url: 'text?',
  accent: 'text?',
  logo_id: 'text?',
  second_tx_id: 'text?',
  is_denied: 'bool',
  genesis_id: 'text?',
  head_number: 'int8?',
  head_time: 'timestamptz?',
  solid_number: 'int8?',
  ...payingTransferColumns,
} as const;

const SELECT = `select i.id, i.network, i.status, i.checkout_token, i.expires_at, i.event_count, i.requested_micro,
     i.payable_micro, ${addressColumn('a')} as address, p.name as project_name, p.support_contact, p.return_url, p.accent, p.logo_id,
     (select encode(d.tx_id, 'hex') from transfers d
      where d.project_id = i.project_id and d.invoice_id = i.id and d.kind = 'duplicate' and ${stands('d')}
        and not exists (select from transfer_resolutions r where r.transfer_id = d.id)
      order by d.id limit 1) as second_tx_id,
     exists (select from transfer_annulments n where n.transfer_id = i.paid_transfer_id) as is_denied,
     encode(c.genesis_id, 'hex') as genesis_id,
     coalesce(h.number, c.solid_number) as head_number, coalesce(h.block_time, c.solid_time) as head_time,
     c.solid_number, ${PAYING_TRANSFER_COLUMNS}
   from invoices i
   join addresses a on a.id = i.address_id
   join projects p on p.id = i.project_id
   ${JOIN_HEAD}
   ${JOIN_PAYING_TRANSFER}`;

const selectByToken = statement('checkout-select', columns, `${SELECT} where i.checkout_token = $1`);

/** The invoice behind a checkout link. */
export async function findCheckoutInvoice(db: Sql, checkoutToken: string): Promise<CheckoutInvoice | null> {
  const [row] = await db.run(selectByToken, [checkoutToken]);
  return row === undefined ? null : toInvoice(row);
}

const selectByTokens = statement('checkout-select-many', columns, `${SELECT} where i.checkout_token = any($1::text[])`);

/** Those behind several links, in no order. At most 500 links at once. */
export async function readCheckoutInvoices(db: Sql, checkoutTokens: readonly string[]): Promise<CheckoutInvoice[]> {
  return (await db.run(selectByTokens, [checkoutTokens])).map(toInvoice);
}

const selectHeads = statement(
  'checkout-heads',
  { network: 'text', head_number: 'int8', head_time: 'timestamptz' },
  `select c.network, coalesce(h.number, c.solid_number) as head_number, coalesce(h.block_time, c.solid_time) as head_time
   from chain_cursors c
   left join lateral (
     select number, block_time from head_blocks where network = c.network order by number desc limit 1) h on true`,
);

/** The newest examined block of every network that has one. */
export async function readChainHeads(db: Sql): Promise<Map<Network, ChainHead>> {
  const rows = await db.run(selectHeads, []);
  return new Map(rows.map((row) => [row.network as Network, toHead(row.head_number, row.head_time)]));
}

function toInvoice(row: Row<typeof columns>): CheckoutInvoice {
  const { head_number, head_time } = row;
  return {
    id: row.id,
    network: row.network as Network,
    status: row.status as InvoiceStatus,
    checkoutToken: row.checkout_token,
    expiresAt: row.expires_at,
    hadPayment: hadPayment(row.status as InvoiceStatus, row.event_count),
    requestedMicro: microUsdt(row.requested_micro),
    payableMicro: microUsdt(row.payable_micro),
    address: row.address,
    brand: {
      name: row.project_name,
      supportContact: row.support_contact,
      returnUrl: row.return_url,
      accent: row.accent,
      logoId: row.logo_id,
    },
    secondTxId: row.second_tx_id,
    genesisId: row.genesis_id,
    head: head_number === null || head_time === null ? null : toHead(head_number, head_time),
    solidNumber: row.solid_number === null ? null : Number(row.solid_number),
    transfer: toPayingTransfer(row),
    isDenied: row.is_denied,
  };
}

function toHead(number: bigint, time: UnixMs): ChainHead {
  return { number: Number(number), time };
}
