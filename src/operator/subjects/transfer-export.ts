import { encodeId, NIL_UUID } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount, type MicroUsdt } from '../../domain/money.ts';
import type { ResolutionKind } from '../../domain/resolution.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { rowOf, rowsOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_TRANSFER } from '../../store/db/sealed-tables.ts';
import { count, maybe, micro, type Row, sealedBefore, text } from '../../store/db/statement.ts';
import type { Project } from '../../store/ledger/projects.ts';
import { resolutionColumn } from '../../store/ledger/resolution-column.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import type { Actor } from '../actor.ts';
import { clip, FieldError } from '../input/problems.ts';
import { readPeriod } from '../input/readers.ts';
import { selectProject } from '../select.ts';
import type { TransferKind } from './transfer-records.ts';
import { readKinds, toDates } from './transfers.ts';

/** A line of an export: a transfer, the facts that only an incoming one has, and the likeliest reason why it paid nothing. */
type ExportRow = {
  project: Project;
  transfer: ExportedOutgoing;
  incoming?: ExportedTransfer;
  cause?: Cause | undefined;
};

type Cell = string | number | null | undefined;
const idOf = (kind: 'trf' | 'inv', found: { id: string } | null | undefined) => found && encodeId(kind, found.id);

/** The columns of an export, in their order. Scripts and spreadsheets rely on it: new ones come last. Cells that do not apply are empty. */
export const EXPORT_COLUMNS: readonly (readonly [name: string, cell: (row: ExportRow) => Cell])[] = [
  ['direction', ({ incoming }) => (incoming === undefined ? 'out' : 'in')],
  ['time', ({ transfer }) => toIso(transfer.blockTime)],
  ['amount', ({ transfer }) => formatAmount(transfer.amountMicro)],
  ['kind', ({ incoming }) => incoming?.kind],
  ['from', ({ transfer }) => transfer.from],
  ['to', ({ transfer }) => transfer.to],
  ['txId', ({ transfer }) => transfer.txId],
  ['logIndex', ({ transfer }) => transfer.logIndex],
  ['blockNumber', ({ transfer }) => transfer.blockNumber],
  ['verified', ({ transfer }) => transfer.verified],
  ['recordedAt', ({ transfer }) => toIso(transfer.recordedAt)],
  ['projectId', ({ project }) => encodeId('prj', project.id)],
  ['network', ({ project }) => project.network],
  ['transferId', ({ incoming }) => idOf('trf', incoming)],
  ['invoiceId', ({ incoming }) => idOf('inv', incoming?.invoice)],
  ['externalId', ({ incoming }) => incoming?.invoice?.externalId],
  ['reason', ({ cause }) => cause?.code],
  ['confidence', ({ cause }) => cause?.confidence],
  ['nearestInvoiceId', ({ cause }) => idOf('inv', cause?.invoices[0])],
  ['nearestExternalId', ({ cause }) => cause?.invoices[0]?.externalId],
  ['resolution', ({ incoming }) => incoming?.resolution?.resolution],
  ['resolvedAt', ({ incoming }) => incoming?.resolution && toIso(incoming.resolution.resolvedAt)],
  ['resolvedBy', ({ incoming }) => incoming?.resolution?.resolvedBy],
  ['note', ({ incoming }) => incoming?.resolution?.note],
  ['resolvedInvoiceId', ({ incoming }) => idOf('inv', incoming?.resolution?.invoice)],
  ['resolvedExternalId', ({ incoming }) => incoming?.resolution?.invoice?.externalId],
];

type Selection = ExportFilter & { direction: 'in' | 'out' | 'both' };

/** Errors: `INVALID_ARGUMENT`. */
export function readSelection(input: {
  direction: string;
  kind: string;
  from?: string | undefined;
  to?: string | undefined;
}): Selection {
  const { direction } = input;
  if (direction !== 'in' && direction !== 'out' && direction !== 'both') {
    throw new FieldError('direction', `is ${clip(direction)}: choose in, out or both`);
  }
  return { direction, kinds: readKinds(input.kind), ...readPeriod(input) };
}

/** As many as can be diagnosed at once. */
const BATCH = 500;

/** The ledger of a project in batches, so that no more than one is in memory, whatever the size. */
export async function exportTransfers(
  { db }: { db: Sql },
  actor: Actor,
  { projectId, direction, ...filter }: Selection & { projectId: string | undefined },
): Promise<AsyncIterable<ExportRow[]>> {
  const project = await selectProject(db, actor, projectId);
  return (async function* () {
    if (direction !== 'out') yield* incomingRows(db, project, filter);
    if (direction !== 'in') yield* outgoingRows(db, project, filter);
  })();
}

/**
 * The incoming transfers, in the order of their records. Batches go on from the last id and need no common transaction, which a slow
 * reader would keep open for hours. The ledger is append-only, so each transfer that was there at the start comes exactly once.
 */
async function* incomingRows(db: Sql, project: Project, filter: ExportFilter): AsyncGenerator<ExportRow[]> {
  const last = await findNewestTransfer(db, project.id);
  let after = NIL_UUID;
  while (last !== null) {
    const transfers = await findIncomingAfter(db, project.id, { after, last: last.id, limit: BATCH }, filter);
    const newest = transfers.at(-1);
    if (newest === undefined) return;
    const unsettled = transfers.filter(({ kind }) => kind !== 'matched').map(({ id }) => id);
    const causes = await diagnoseTransfers(db, unsettled);
    yield transfers.map((transfer) => {
      return { project, transfer, incoming: transfer, cause: causes.get(transfer.id)?.[0] };
    });
    after = newest.id;
  }
}

/** The outgoing transfers, in the order of the chain. */
async function* outgoingRows(db: Sql, project: Project, filter: ExportFilter): AsyncGenerator<ExportRow[]> {
  const last = await findNewestOutgoing(db, project.id);
  let after: ChainPlace = { blockNumber: -1, txId: '', logIndex: 0 };
  while (last !== null) {
    const transfers = await findOutgoingAfter(db, project.id, { after, last, limit: BATCH }, filter);
    const newest = transfers.at(-1);
    if (newest === undefined) return;
    yield transfers.map((transfer) => ({ project, transfer }));
    after = newest;
  }
}

type ExportFilter = { kinds: readonly TransferKind[]; from: UnixMs | null; until: UnixMs | null };

/** The transfer of a project that was recorded last. */
const findNewestTransfer = rowOf(
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
type ExportedTransfer = Omit<Row<typeof incomingShape>, 'seal'>;

/** The next transfers of a project above the id `after` and not above `last` (UUIDs), in the order of their records. */
const findIncomingAfter = rowsOf(
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
     select ${resolutionColumn('')} as resolution, note, resolved_by, resolved_at, invoice_id from transfer_resolutions
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
type ExportedOutgoing = Row<typeof shared>;

/** A place in the chain; a transfer's identity in a network, with its block. */
const place = { blockNumber: count, txId: 'text', logIndex: 'int4' } as const;
type ChainPlace = Row<typeof place>;

/** The place of the last transfer that left a project's addresses. */
const findNewestOutgoing = rowOf(
  'export-newest-outgoing',
  place,
  `select o.block_number, encode(o.tx_id, 'hex') as tx_id, o.log_index from outgoing_transfers o
   where o.project_id = $1 order by o.block_number desc, o.tx_id desc, o.log_index desc limit 1`,
  (projectId: string) => [projectId],
);

/** The next transfers from a project's addresses above the place `after` and not above `last`, in the order of the chain. */
const findOutgoingAfter = rowsOf(
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
