import type { MicroUsdt } from '../../domain/money.ts';
import type { ResolutionKind } from '../../domain/resolution.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { rowOf, rowsOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_TRANSFER } from '../../store/db/sealed-tables.ts';
import { count, maybe, micro, type Row, sealedBefore, text } from '../../store/db/statement.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import { type DeskFilter, type TransferKind, toDates } from './transfer-desk.ts';

export type ExportFilter = Pick<DeskFilter, 'kinds' | 'from' | 'until'>;

/** The transfer of a project that was recorded last. */
export const findNewestTransfer = rowOf(
  'export-newest',
  { id: 'uuid' },
  'select id from transfers where project_id = $1 order by id desc limit 1',
  (projectId: string) => [projectId],
);

/** The columns of a transfer in either direction. */
const shared = {
  txId: 'text',
  logIndex: 'int4',
  blockNumber: count,
  blockTime: 'timestamptz',
  recordedAt: 'timestamptz',
  from: 'text',
  to: 'text',
  amountMicro: micro<MicroUsdt>(),
  verified: 'text',
} as const;
const invoice = maybe({ id: 'uuid', externalId: 'text' });

const incomingShape = {
  id: 'uuid',
  ...shared,
  to: 'address',
  kind: text<TransferKind>(),
  invoice,
  /** The resolution in force. */
  resolution: maybe({
    resolution: text<ResolutionKind>(),
    note: 'text',
    resolvedBy: 'text',
    resolvedAt: 'timestamptz',
    invoice,
  }),
  seal: sealedBefore({ ...SEALED_TRANSFER, isReadOnce: true }),
} as const;
/** A transfer to one of our addresses for the books. Ids are UUIDs, `txId` is 64 hex characters. */
export type ExportedTransfer = Omit<Row<typeof incomingShape>, 'seal'>;

/** The next transfers of a project above the id `after` and not above `last` (UUIDs), in the order of their records. */
export const findIncomingAfter = rowsOf(
  'export-incoming',
  incomingShape,
  // Lateral, so that PostgreSQL looks up each row's invoices and resolution, however small it believes the tables to be.
  `select t.id, encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, t.block_time, t.recorded_at,
     t.from_address as "from", ${addressColumn('a')} as "to", t.amount_micro, t.verified, t.kind, i.id as invoice_id,
     i.external_id as invoice_external_id, r.resolution as resolution_resolution, r.note as resolution_note,
     r.resolved_by as resolution_resolved_by, r.resolved_at as resolution_resolved_at, f.id as resolution_invoice_id,
     f.external_id as resolution_invoice_external_id,
     ${sealColumn(SEALED_TRANSFER, 't.')} as seal
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
  (projectId: string, range: { after: string; last: string; limit: number }, filter: ExportFilter) => [
    ...[projectId, range.after, range.last, filter.kinds],
    ...[...toDates(filter), range.limit],
  ],
);

/** A transfer from one of our addresses for the books. */
export type ExportedOutgoing = Row<typeof shared>;

/** A place in the chain; a transfer's identity in a network, with its block. */
const place = { blockNumber: count, txId: 'text', logIndex: 'int4' } as const;
export type ChainPlace = Row<typeof place>;

/** The place of the last transfer that left a project's addresses. */
export const findNewestOutgoing = rowOf(
  'export-newest-outgoing',
  place,
  `select o.block_number, encode(o.tx_id, 'hex') as tx_id, o.log_index from outgoing_transfers o
   where o.project_id = $1 order by o.block_number desc, o.tx_id desc, o.log_index desc limit 1`,
  (projectId: string) => [projectId],
);

/** The next transfers from a project's addresses above the place `after` and not above `last`, in the order of the chain. */
export const findOutgoingAfter = rowsOf(
  'export-outgoing',
  { ...shared, from: 'address' },
  `select encode(t.tx_id, 'hex') as tx_id, t.log_index, t.block_number, t.block_time, t.recorded_at,
     ${addressColumn('a')} as "from", t.to_address as "to", t.amount_micro, t.verified
   from (
     select * from outgoing_transfers u
     where project_id = $1 and ${outgoingStands('u')} and (block_number, tx_id, log_index) > ($2::int8, decode($3, 'hex'), $4::int4)
       and (block_number, tx_id, log_index) <= ($5::int8, decode($6, 'hex'), $7::int4)
       and ($8::timestamptz is null or block_time >= $8) and ($9::timestamptz is null or block_time < $9)
     order by block_number, tx_id, log_index limit $10::int8) t
   join addresses a on a.id = t.address_id
   order by t.block_number, t.tx_id, t.log_index`,
  (
    projectId: string,
    { after, last, limit }: { after: ChainPlace; last: ChainPlace; limit: number },
    times: Pick<ExportFilter, 'from' | 'until'>,
  ) => {
    const places = [after, last].flatMap(({ blockNumber, txId, logIndex }) => [blockNumber, txId, logIndex]);
    return [projectId, ...places, ...toDates(times), limit];
  },
);
