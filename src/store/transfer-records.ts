import type { Verified } from '../domain/chain-block.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import type { Match } from '../domain/match.ts';
import { type MicroUsdt, microUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AccountHex, TronAddress } from '../tron/address.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { ANNULMENT_COLUMNS, type Annulment, annulmentColumns, toAnnulment } from './standing.ts';
import { type Row, statement } from './statement.ts';

/** An incoming transfer with its evidence and what was decided. UUIDs; `txId` and `blockId` are 64 hex characters. */
export type TransferRecord = {
  id: string;
  projectId: string;
  projectName: string;
  network: Network;
  address: TronAddress;
  /** When the address was retired. */
  retiredAt: UnixMs | null;
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockId: string;
  blockTime: UnixMs;
  from: string;
  amountMicro: MicroUsdt;
  kind: Match['kind'];
  /** When it was decided: with its event, or when its row was written. */
  decidedAt: UnixMs;
  recordedAt: UnixMs;
  /** `null` for rows of before producers were noted. */
  producer: AccountHex | null;
  verified: Verified;
  nodes: string[];
  /** The invoice that it pays, or, of a duplicate, that was paid before. */
  invoice: { id: string; externalId: string; status: InvoiceStatus; expiresAt: UnixMs } | null;
  /** `null` unless the chain denies it and it was taken back: then it counts no more. */
  annulment: Annulment | null;
};

const columns = {
  id: 'uuid',
  project_id: 'uuid',
  project_name: 'text',
  network: 'text',
  address: 'address',
  retired_at: 'timestamptz?',
  tx_id: 'text',
  log_index: 'int4',
  block_number: 'int8',
  block_id: 'text',
  block_time: 'timestamptz',
  from_address: 'text',
  amount_micro: 'numeric',
  kind: 'text',
  decided_at: 'timestamptz',
  recorded_at: 'timestamptz',
  producer: 'text?',
  verified: 'text',
  nodes: 'text[]',
  invoice_id: 'uuid?',
  external_id: 'text?',
  invoice_status: 'text?',
  expires_at: 'timestamptz?',
  ...annulmentColumns,
} as const;

// The event of a decision is written by the watcher's clock, as all other events are; the row has the database's.
const SELECT = `select t.id, t.project_id, p.name as project_name, t.network, ${addressColumn('a')} as address, a.retired_at, encode(t.tx_id, 'hex') as tx_id,
     t.log_index, t.block_number, encode(t.block_id, 'hex') as block_id, t.block_time, t.from_address, t.amount_micro,
     t.kind, coalesce(e.created_at, t.recorded_at) as decided_at, t.recorded_at, encode(t.producer, 'hex') as producer,
     t.verified, t.nodes, t.invoice_id, i.external_id, i.status as invoice_status, i.expires_at,
     ${ANNULMENT_COLUMNS}`;
const JOINS = `join projects p on p.id = t.project_id
   join addresses a on a.id = t.address_id
   left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   left join transfer_annulments n on n.transfer_id = t.id
   left join lateral (select created_at from events where transfer_id = t.id order by created_at limit 1) e on true`;

const byIds = statement(
  'transfer-records-by-ids',
  columns,
  `${SELECT} from (select distinct unnest($1::uuid[]) as id) wanted join transfers t on t.id = wanted.id
   ${JOINS} order by t.id`,
);

/** The transfers with these UUIDs, in the order in which they were recorded. */
export async function findTransfers(db: Sql, ids: readonly string[]): Promise<TransferRecord[]> {
  return ids.length === 0 ? [] : (await db.run(byIds, [ids])).map(toTransfer);
}

const byTransaction = statement(
  'transfer-records-by-transaction',
  columns,
  `${SELECT} from transfers t ${JOINS}
   where t.network in ('mainnet', 'nile', 'devnet') and t.tx_id = decode($1, 'hex')
     and ($2::uuid is null or t.project_id = $2)
   order by t.network, t.log_index limit $3`,
);

/** Incoming transfers of a transaction, on any network. `txId` is 64 hex characters. */
export async function findTransfersOfTransaction(
  db: Sql,
  txId: string,
  projectId: string | null,
  limit: number,
): Promise<TransferRecord[]> {
  return (await db.run(byTransaction, [txId, projectId, limit])).map(toTransfer);
}

const byAddress = statement(
  'transfer-records-by-address',
  columns,
  `${SELECT} from (
     select * from transfers where address_id = $1 order by block_number desc, id desc limit $2) t
   ${JOINS} order by t.block_number, t.id`,
);

/** The newest transfers to an address, in chain order. */
export async function findTransfersToAddress(db: Sql, addressId: string, limit: number): Promise<TransferRecord[]> {
  return (await db.run(byAddress, [addressId, limit])).map(toTransfer);
}

const bySender = statement(
  'transfer-records-by-sender',
  columns,
  `${SELECT} from projects s
   cross join lateral (
     select * from transfers where project_id = s.id and from_address = $1 order by block_number desc, id desc limit $3) t
   ${JOINS} where $2::uuid is null or s.id = $2 order by t.block_time desc, t.id desc limit $3`,
);

/** The newest transfers that an address of somebody else sent to ours, the newest first. */
export async function findTransfersFrom(
  db: Sql,
  sender: TronAddress,
  projectId: string | null,
  limit: number,
): Promise<TransferRecord[]> {
  return (await db.run(bySender, [sender, projectId, limit])).map(toTransfer);
}

function toTransfer(row: Row<typeof columns>): TransferRecord {
  return {
    id: row.id,
    projectId: row.project_id,
    projectName: row.project_name,
    network: row.network as Network,
    address: row.address,
    retiredAt: row.retired_at,
    txId: row.tx_id,
    logIndex: row.log_index,
    blockNumber: Number(row.block_number),
    blockId: row.block_id,
    blockTime: row.block_time,
    from: row.from_address,
    amountMicro: microUsdt(row.amount_micro),
    kind: row.kind as Match['kind'],
    decidedAt: row.decided_at,
    recordedAt: row.recorded_at,
    producer: row.producer as AccountHex | null,
    verified: row.verified as Verified,
    nodes: row.nodes,
    invoice: toInvoice(row),
    annulment: toAnnulment(row),
  };
}

function toInvoice(row: Row<typeof columns>): TransferRecord['invoice'] {
  const { invoice_id: id, external_id: externalId, invoice_status: status, expires_at: expiresAt } = row;
  if (id === null || externalId === null || status === null || expiresAt === null) return null;
  return { id, externalId, status: status as InvoiceStatus, expiresAt };
}
