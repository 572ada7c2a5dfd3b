import type { MicroUsdt } from '../domain/money.ts';
import type { ResolutionKind } from '../domain/resolution.ts';
import type { UnixMs } from '../domain/time.ts';
import { addressColumn } from './address-column.ts';
import type { Sql } from './database.ts';
import { outgoingStands, stands } from './standing.ts';
import { type Row, statement } from './statement.ts';
import { type DeskFilter, type TransferKind, toDates } from './transfer-desk.ts';

/** A transfer to one of our addresses for the books. Ids are UUIDs, `txId` is 64 hex characters. */
export type ExportedTransfer = {
  id: string;
  txId: string;
  logIndex: number;
  blockNumber: number;
  blockTime: UnixMs;
  recordedAt: UnixMs;
  from: string;
  to: string;
  amountMicro: MicroUsdt;
  verified: string;
  kind: TransferKind;
  invoice: { id: string; externalId: string } | null;
  /** The resolution in force. */
  resolution: null | {
    resolution: ResolutionKind;
    note: string;
    resolvedBy: string;
    resolvedAt: UnixMs;
    invoice: { id: string; externalId: string } | null;
  };
};

export type ExportFilter = Pick<DeskFilter, 'kinds' | 'from' | 'until'>;

const selectNewest = statement(
  'export-newest',
  { id: 'uuid?' },
  'select id from transfers where project_id = $1 order by id desc limit 1',
);

/** The transfer of a project that was recorded last. */
export async function findNewestTransfer(db: Sql, projectId: string): Promise<string | null> {
  const [row] = await db.run(selectNewest, [projectId]);
  return row?.id ?? null;
}

/** What is told of a transfer in either direction. */
const shared = {
  tx_id: 'text',
  log_index: 'int4',
  block_number: 'int8',
  block_time: 'timestamptz',
  recorded_at: 'timestamptz',
  from_address: 'text',
  to_address: 'text',
  amount_micro: 'numeric',
  verified: 'text',
} as const;

// Lateral, so that PostgreSQL looks up each row's invoices and resolution, however small it believes the tables to be.
const selectIncoming = statement(
  'export-incoming',
  {
    id: 'uuid',
    ...shared,
    to_address: 'address',
    kind: 'text',
    invoice_id: 'uuid?',
    external_id: 'text?',
    resolution: 'text?',
    note: 'text?',
    resolved_by: 'text?',
    resolved_at: 'timestamptz?',
    for_invoice_id: 'uuid?',
    for_external_id: 'text?',
  },
  `select t.id, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, t.block_time, t.recorded_at, t.from_address,
     ${addressColumn('a')} as to_address, t.amount_micro, t.verified, t.kind, i.id as invoice_id, i.external_id, r.resolution, r.note,
     r.resolved_by, r.resolved_at, f.id as for_invoice_id, f.external_id as for_external_id
   from (
     select * from transfers u
     where project_id = $1 and ${stands('u')} and id > $2 and id <= $3 and kind = any($4::text[])
       and ($5::timestamptz is null or block_time >= $5) and ($6::timestamptz is null or block_time < $6)
     order by id limit $7::int8) t
   join addresses a on a.id = t.address_id
   left join lateral (
     select id, external_id from invoices where project_id = t.project_id and id = t.invoice_id limit 1) i on true
   left join lateral (
     select resolution, note, resolved_by, resolved_at, invoice_id from transfer_resolutions
     where transfer_id = t.id order by id desc limit 1) r on true
   left join lateral (
     select id, external_id from invoices where project_id = t.project_id and id = r.invoice_id limit 1) f on true
   order by t.id`,
);

/** The next transfers of a project above the id `after` and not above `last` (UUIDs), in the order of their records. */
export async function findIncomingAfter(
  db: Sql,
  projectId: string,
  range: { after: string; last: string; limit: number },
  filter: ExportFilter,
): Promise<ExportedTransfer[]> {
  const { after, last, limit } = range;
  const rows = await db.run(selectIncoming, [projectId, after, last, filter.kinds, ...toDates(filter), limit]);
  return rows.map((row) => ({
    ...toShared(row),
    id: row.id,
    kind: row.kind as TransferKind,
    invoice: toInvoice(row.invoice_id, row.external_id),
    resolution: toResolution(row),
  }));
}

function toResolution(row: {
  resolution: string | null;
  note: string | null;
  resolved_by: string | null;
  resolved_at: UnixMs | null;
  for_invoice_id: string | null;
  for_external_id: string | null;
}): ExportedTransfer['resolution'] {
  const { resolution, note, resolved_by: resolvedBy, resolved_at: resolvedAt } = row;
  if (resolution === null || note === null || resolvedBy === null || resolvedAt === null) return null;
  const invoice = toInvoice(row.for_invoice_id, row.for_external_id);
  return { resolution: resolution as ResolutionKind, note, resolvedBy, resolvedAt, invoice };
}

function toInvoice(id: string | null, externalId: string | null): { id: string; externalId: string } | null {
  return id === null || externalId === null ? null : { id, externalId };
}

/** A transfer from one of our addresses for the books. */
export type ExportedOutgoing = Pick<
  ExportedTransfer,
  'txId' | 'logIndex' | 'blockNumber' | 'blockTime' | 'recordedAt' | 'from' | 'to' | 'amountMicro' | 'verified'
>;

/** A place in the chain; a transfer's identity in a network, with its block. */
export type ChainPlace = { blockNumber: number; txId: string; logIndex: number };

const selectNewestOutgoing = statement(
  'export-newest-outgoing',
  { block_number: 'int8', tx_id: 'text', log_index: 'int4' },
  `select o.block_number, encode(o.tx_id, 'hex') as tx_id, o.log_index from outgoing_transfers o
   where o.project_id = $1 order by o.block_number desc, o.tx_id desc, o.log_index desc limit 1`,
);

/** The place of the last transfer that left a project's addresses. */
export async function findNewestOutgoing(db: Sql, projectId: string): Promise<ChainPlace | null> {
  const [row] = await db.run(selectNewestOutgoing, [projectId]);
  if (row === undefined) return null;
  return { blockNumber: Number(row.block_number), txId: row.tx_id, logIndex: row.log_index };
}

const selectOutgoing = statement(
  'export-outgoing',
  { ...shared, from_address: 'address' },
  `select encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, t.block_time, t.recorded_at,
     ${addressColumn('a')} as from_address, t.to_address, t.amount_micro, t.verified
   from (
     select * from outgoing_transfers u
     where project_id = $1 and ${outgoingStands('u')} and (block_number, tx_id, log_index) > ($2::int8, decode($3, 'hex'), $4::int4)
       and (block_number, tx_id, log_index) <= ($5::int8, decode($6, 'hex'), $7::int4)
       and ($8::timestamptz is null or block_time >= $8) and ($9::timestamptz is null or block_time < $9)
     order by block_number, tx_id, log_index limit $10::int8) t
   join addresses a on a.id = t.address_id
   order by t.block_number, t.tx_id, t.log_index`,
);

/** The next transfers from a project's addresses above the place `after` and not above `last`, in the order of the chain. */
export async function findOutgoingAfter(
  db: Sql,
  projectId: string,
  range: { after: ChainPlace; last: ChainPlace; limit: number },
  times: Pick<ExportFilter, 'from' | 'until'>,
): Promise<ExportedOutgoing[]> {
  const { after, last, limit } = range;
  const places = [after, last].flatMap(({ blockNumber, txId, logIndex }) => [blockNumber, txId, logIndex]);
  const rows = await db.run(selectOutgoing, [projectId, ...places, ...toDates(times), limit]);
  return rows.map(toShared);
}

function toShared(row: Row<typeof shared>): ExportedOutgoing {
  return {
    txId: row.tx_id,
    logIndex: row.log_index,
    blockNumber: Number(row.block_number),
    blockTime: row.block_time,
    recordedAt: row.recorded_at,
    from: row.from_address,
    to: row.to_address,
    amountMicro: row.amount_micro as MicroUsdt,
    verified: row.verified,
  };
}
