import type { Verified } from '../../domain/chain-block.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { Match } from '../../domain/match.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { ResolutionKind } from '../../domain/resolution.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { ANY_NETWORK } from '../../store/db/any-network.ts';
import type { Sql } from '../../store/db/database.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_RESOLUTION, SEALED_TRANSFER } from '../../store/db/sealed-tables.ts';
import { count, maybe, maybeText, micro, type Row, sealedBefore, statement, text } from '../../store/db/statement.ts';
import { resolutionColumn } from '../../store/ledger/resolution-column.ts';
import { ANNULMENT_COLUMNS, annulmentShape } from '../../store/ledger/standing.ts';
import { joinRefund, refundShape } from '../../store/ledger/transfer-refunds.ts';
import type { AccountHex, TronAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import { namedInvoice } from '../select.ts';

export type TransferKind = Match['kind'];

const shape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  network: text<Network>(),
  address: 'address',
  /** When the address was retired. */
  retiredAt: 'timestamptz?',
  txId: 'text',
  logIndex: 'int4',
  blockNumber: count,
  blockId: 'text',
  blockTime: 'timestamptz',
  from: 'text',
  amountMicro: micro<MicroUsdt>(),
  kind: text<TransferKind>(),
  /** When it was decided: with its event, or when its row was written. */
  decidedAt: 'timestamptz',
  recordedAt: 'timestamptz',
  /** `null` for rows of before producers were noted. */
  producer: maybeText<AccountHex>(),
  verified: text<Verified>(),
  nodes: 'text[]',
  /** The invoice that it pays, or, of a duplicate, that was paid before. */
  invoice: maybe({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>(), expiresAt: 'timestamptz' }),
  /** `null` unless the chain denies it and it was taken back: then it counts no more. */
  ...annulmentShape,
  /** By which it was sent back. */
  ...refundShape,
  seal: sealedBefore(SEALED_TRANSFER),
} as const;

/** An incoming transfer with its evidence and what was decided. UUIDs; `txId` and `blockId` are 64 hex characters. */
export type TransferRecord = Omit<Row<typeof shape>, 'seal'>;

// The event of a decision is written by the watcher's clock, as all other events are; the row has the database's.
const SELECT = `select t.id, t.project_id, p.name as project_name, t.network, ${addressColumn('a')} as address, a.retired_at, encode(t.tx_id, 'hex') as tx_id,
     t.log_index, t.block_number, encode(t.block_id, 'hex') as block_id, t.block_time, t.from_address as "from", t.amount_micro,
     t.kind, coalesce(e.created_at, t.recorded_at) as decided_at, t.recorded_at, encode(t.producer, 'hex') as producer,
     t.verified, t.nodes, i.id as invoice_id, i.external_id as invoice_external_id, i.status as invoice_status,
     i.expires_at as invoice_expires_at,
     ${ANNULMENT_COLUMNS}, encode(r.tx_id, 'hex') as refund_tx_id, r.log_index as refund_log_index, r.block_number as refund_block_number,
     r.block_time as refund_block_time, r."from" as refund_from, r.is_sound as refund_is_sound,
     r.is_sent_sound as refund_is_sent_sound,
     ${sealColumn(SEALED_TRANSFER, 't.')} as seal`;
const JOINS = `join projects p on p.id = t.project_id
   join addresses a on a.id = t.address_id
   left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   left join transfer_annulments n on n.transfer_id = t.id
   ${joinRefund('t')}
   left join lateral (select created_at from events where transfer_id = t.id order by created_at limit 1) e on true`;

/** The transfers with these UUIDs, in the order in which they were recorded. */
export const findTransfers = rowsOf(
  'transfer-records-by-ids',
  shape,
  `${SELECT} from (select distinct unnest($1::uuid[]) as id) wanted join transfers t on t.id = wanted.id
   ${JOINS} order by t.id`,
  (ids: readonly string[]) => [ids],
);

/** Incoming transfers of a transaction to these projects or to all, on any network. `txId` is 64 hex characters. */
export const findTransfersOfTransaction = rowsOf(
  'transfer-records-by-transaction',
  shape,
  `${SELECT} from transfers t ${JOINS}
   where t.network in ${ANY_NETWORK} and t.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or t.project_id = any($2))
   order by t.network, t.log_index limit $3`,
  (txId: string, projects: Actor['projects'], limit: number) => [txId, projects, limit],
);

/** The newest transfers to an address, in chain order. */
export const findTransfersToAddress = rowsOf(
  'transfer-records-by-address',
  shape,
  `${SELECT} from (
     select * from transfers where address_id = $1 order by block_number desc, id desc limit $2) t
   ${JOINS} order by t.block_number, t.id`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** The newest transfers that an address of somebody else sent to ours, the newest first. */
export const findTransfersFrom = rowsOf(
  'transfer-records-by-sender',
  shape,
  `${SELECT} from projects s
   cross join lateral (
     select * from transfers where project_id = s.id and from_address = $1 order by block_number desc, id desc limit $3) t
   ${JOINS} where $2::uuid[] is null or s.id = any($2) order by t.block_time desc, t.id desc limit $3`,
  (sender: TronAddress, projects: Actor['projects'], limit: number) => [sender, projects, limit],
);

/** The most that are read for one transfer; an operator who decided more often sees the newest. */
const MAX_RESOLUTIONS = 100;

const selectResolutions = statement(
  'resolution-select',
  {
    transferId: 'uuid',
    resolution: text<ResolutionKind>(),
    note: 'text',
    /** The invoice that the money was for. */
    invoice: maybe(namedInvoice),
    resolvedBy: 'text',
    resolvedAt: 'timestamptz',
    seal: sealedBefore(SEALED_RESOLUTION),
  },
  `select r.transfer_id, ${resolutionColumn('r.')} as resolution, r.note, i.id as invoice_id, i.external_id as invoice_external_id,
     i.status as invoice_status, r.resolved_by, r.resolved_at, ${sealColumn(SEALED_RESOLUTION, 'r.')} as seal
   from unnest($1::uuid[]) as asked (id)
   cross join lateral (
     select * from transfer_resolutions where transfer_id = asked.id order by id desc limit ${MAX_RESOLUTIONS}) r
   left join lateral (
     select id, external_id, status from invoices where project_id = r.project_id and id = r.invoice_id limit 1) i on true
   order by r.id`,
);

/** An operator's record about a transfer that paid nothing. Ids are UUIDs. */
export type Resolution = Omit<Row<typeof selectResolutions.shape>, 'seal'>;

/** The resolutions of transfers (UUIDs), oldest first, the newest 100 of each. A transfer without resolutions has no entry. */
export async function findResolutions(db: Sql, transferIds: readonly string[]): Promise<Map<string, Resolution[]>> {
  const found = new Map<string, Resolution[]>();
  for (const row of await db.run(selectResolutions, [transferIds])) {
    found.set(row.transferId, [...(found.get(row.transferId) ?? []), row]);
  }
  return found;
}
