import type { AccountHex, TronAddress } from '@quittance/tron/address';
import type { Verified } from '../../../core/domain/chain-block.ts';
import { encodeId, NIL_UUID } from '../../../core/domain/ids.ts';
import type { InvoiceStatus, Match } from '../../../core/domain/invoice.ts';
import type { Cause } from '../../../core/domain/mismatch.ts';
import { formatAmount, type MicroUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { ResolutionKind } from '../../../core/domain/resolution.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { diagnoseTransfers } from '../../../core/payments/mismatch/diagnose-transfers.ts';
import { Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import { ANY_NETWORK } from '../../../core/store/db/any-network.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_RESOLUTION, SEALED_TRANSFER } from '../../../core/store/db/sealed-tables.ts';
import {
  count,
  hex,
  listColumns,
  maybe,
  maybeText,
  micro,
  type Row,
  sealedBefore,
  statement,
  text,
} from '../../../core/store/db/statement.ts';
import {
  ANNULMENT_COLUMNS,
  annulmentShape,
  notAnnulled,
  outgoingNotAnnulled,
  resolutionColumn,
} from '../../../core/store/ledger/annulments.ts';
import type { Project } from '../../../core/store/ledger/projects.ts';
import { joinRefund, REFUND_COLUMNS, refundShape } from '../../../core/store/ledger/transfer-refunds.ts';
import type { Actor } from '../actor.ts';
import { clip, FieldError } from '../input/problems.ts';
import { readPeriod } from '../input/readers.ts';
import { localOperation } from '../operation.ts';
import { exportFile, exportFormat, line, period, projectId } from '../option.ts';
import { namedInvoice, selectProject } from '../select.ts';

export const TRANSFER_KINDS = ['unmatched', 'duplicate', 'matched'] as const satisfies TransferKind[];

/** Reads one kind, or `all`. Throws `INVALID_ARGUMENT`. */
export function readKinds(text: string): readonly TransferKind[] {
  if (text === 'all') return TRANSFER_KINDS;
  const kind = TRANSFER_KINDS.find((known) => known === text);
  if (kind !== undefined) return [kind];
  throw new FieldError('kind', `is ${clip(text)}: choose ${TRANSFER_KINDS.join(', ')} or all`);
}

/** Converts a period's bounds for PostgreSQL. */
export function toDates({ from, until }: Record<'from' | 'until', UnixMs | null>): (Date | null)[] {
  return [from, until].map((time) => (time === null ? null : new Date(time)));
}

export type TransferKind = Match;

const shape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  network: text<Network>(),
  address: 'address',
  /** When the address was retired. */
  retiredAt: 'timestamptz?',
  txId: hex(),
  logIndex: 'int4',
  blockNumber: count,
  blockId: hex(),
  blockTime: 'timestamptz',
  from: 'text',
  amountMicro: micro<MicroUsdt>(),
  kind: text<TransferKind>(),
  /** When the match was decided: the time of its event or, without an event, the time when its row was written. */
  decidedAt: 'timestamptz',
  recordedAt: 'timestamptz',
  /** `null` for rows from before producers were recorded. */
  producer: maybeText<AccountHex>(),
  verified: text<Verified>(),
  nodes: 'text[]',
  /** The invoice that it pays. For a duplicate, the invoice that was already paid. */
  invoice: maybe({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>(), expiresAt: 'timestamptz' }),
  /** Set if the chain denies the transfer and it was taken back, so that it no longer counts. */
  ...annulmentShape,
  /** The transfer that refunded it. */
  ...refundShape,
  seal: sealedBefore(SEALED_TRANSFER),
} as const;

/** An incoming transfer with its evidence and match. Ids are UUIDs; `txId` and `blockId` are 64 hex characters. */
export type TransferRecord = Omit<Row<typeof shape>, 'seal'>;

// Decision events use the watcher's clock, as all events do, while the row uses the database's clock.
const SELECT = `select ${listColumns(shape, 't.', {
  ...{ projectName: 'p.name', address: addressColumn('a'), retiredAt: 'a.retired_at', from: 't.from_address' },
  ...{ decidedAt: 'coalesce(e.created_at, t.recorded_at)', producer: "encode(t.producer, 'hex')", invoice: 'i.' },
  ...{ ...ANNULMENT_COLUMNS, ...REFUND_COLUMNS, seal: sealColumn(SEALED_TRANSFER, 't.') },
})}`;
const JOINS = `join projects p on p.id = t.project_id
   join addresses a on a.id = t.address_id
   left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   left join transfer_annulments n on n.transfer_id = t.id
   ${joinRefund('t')}
   left join lateral (select created_at from events where transfer_id = t.id order by created_at limit 1) e on true`;

/** Returns the transfers with these UUIDs, in recording order. */
export const findTransfers = rowsOf(
  'transfer-records-by-ids',
  shape,
  `${SELECT} from (select distinct unnest($1::uuid[]) as id) wanted join transfers t on t.id = wanted.id
   ${JOINS} order by t.id`,
  (ids: readonly string[]) => [ids],
);

/** Returns a transaction's incoming transfers to these projects or to all, on any network. `txId` is 64 hex characters. */
export const findTransfersOfTransaction = rowsOf(
  'transfer-records-by-transaction',
  shape,
  `${SELECT} from transfers t ${JOINS}
   where t.network in ${ANY_NETWORK} and t.tx_id = decode($1, 'hex')
     and ($2::uuid[] is null or t.project_id = any($2))
   order by t.network, t.log_index limit $3`,
  (txId: string, projects: Actor['projects'], limit: number) => [txId, projects, limit],
);

/** Returns the newest transfers to an address, in chain order. */
export const findTransfersToAddress = rowsOf(
  'transfer-records-by-address',
  shape,
  `${SELECT} from (
     select * from transfers where address_id = $1 order by block_number desc, id desc limit $2) t
   ${JOINS} order by t.block_number, t.id`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** Returns the newest transfers from a stranger's address to ours, newest first. */
export const findTransfersFrom = rowsOf(
  'transfer-records-by-sender',
  shape,
  `${SELECT} from projects s
   cross join lateral (
     select * from transfers where project_id = s.id and from_address = $1 order by block_number desc, id desc limit $3) t
   ${JOINS} where $2::uuid[] is null or s.id = any($2) order by t.block_time desc, t.id desc limit $3`,
  (sender: TronAddress, projects: Actor['projects'], limit: number) => [sender, projects, limit],
);

/** The maximum number of decisions to read for one transfer. If there are more, operators see only the newest. */
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

/** An operator's decision about a transfer that paid nothing. Ids are UUIDs. */
export type Resolution = Omit<Row<typeof selectResolutions.shape>, 'seal'>;

/** Returns each transfer's newest 100 resolutions (UUIDs), oldest first. Transfers without a resolution have no entry. */
export async function findResolutions(db: Sql, transferIds: readonly string[]): Promise<Map<string, Resolution[]>> {
  const found = new Map<string, Resolution[]>();
  for (const row of await db.run(selectResolutions, [transferIds])) {
    found.set(row.transferId, [...(found.get(row.transferId) ?? []), row]);
  }
  return found;
}

/** A line in an export: a transfer, the facts of an incoming one, and the likeliest reason why it paid nothing. */
type ExportRow = {
  project: Project;
  transfer: ExportedOutgoing;
  incoming?: ExportedTransfer;
  cause?: Cause | undefined;
};

type Cell = string | number | null | undefined;
const idOf = (kind: 'trf' | 'inv', found: { id: string } | null | undefined) => found && encodeId(kind, found.id);

/**
 * An export's columns, in order. Scripts and spreadsheets rely on the order, so add new columns at the end. Cells that don't apply are
 * empty.
 */
const EXPORT_COLUMNS: readonly (readonly [name: string, cell: (row: ExportRow) => Cell])[] = [
  ['direction', ({ incoming }) => (incoming === undefined ? 'out' : 'in')],
  ['time', ({ transfer }) => toIso(transfer.blockTime)],
  ['amount', ({ transfer }) => formatAmount(transfer.amountMicro)],
  ['kind', ({ incoming }) => incoming?.kind],
  ...(['from', 'to', 'txId', 'logIndex', 'blockNumber', 'verified'] as const).map(
    (name) => [name, ({ transfer }: ExportRow) => transfer[name]] as const,
  ),
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

/** Throws `INVALID_ARGUMENT`. */
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

/** The maximum number of transfers that can be diagnosed at once. */
const BATCH = 500;

/** Yields a project's ledger in batches so that memory use doesn't depend on its size. */
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
 * Yields the incoming transfers in the order in which they were recorded. Each batch continues after the last id without a common
 * transaction, which a slow reader would keep open for hours. The ledger is append-only, so each transfer that existed at the start appears
 * exactly once.
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

/** Yields the outgoing transfers in chain order. */
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

/** Returns a project's most recently recorded transfer. */
const findNewestTransfer = rowOf(
  'export-newest',
  { id: 'uuid' },
  'select id from transfers where project_id = $1 order by id desc limit 1',
  (projectId: string) => [projectId],
);

/** A transfer's columns, in either direction. */
const shared = {
  txId: hex(),
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
  /** The current resolution. */
  resolution: maybe({
    resolution: text<ResolutionKind>(),
    note: 'text',
    resolvedBy: 'text',
    resolvedAt: 'timestamptz',
    invoice,
  }),
  seal: sealedBefore({ ...SEALED_TRANSFER, isReadOnce: true }),
} as const;
/** The bookkeeping view of a transfer to one of our addresses. Ids are UUIDs, `txId` is 64 hex characters. */
type ExportedTransfer = Omit<Row<typeof incomingShape>, 'seal'>;

/** Returns a project's next transfers above the id `after` and up to `last` (UUIDs), in the order in which they were recorded. */
const findIncomingAfter = rowsOf(
  'export-incoming',
  incomingShape,
  // The join is lateral so that PostgreSQL looks up each row's invoice and resolution, however small it believes the tables to be.
  `select ${listColumns(incomingShape, 't.', {
    ...{ from: 't.from_address', to: addressColumn('a'), invoice: 'i.', seal: sealColumn(SEALED_TRANSFER, 't.') },
    resolution: {
      ...{ resolution: 'r.resolution', note: 'r.note', resolvedBy: 'r.resolved_by', resolvedAt: 'r.resolved_at' },
      invoice: 'f.',
    },
  })}
   from (
     select * from transfers u
     where project_id = $1 and ${notAnnulled('u')} and id > $2 and id <= $3 and kind = any($4::text[])
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

/** The bookkeeping view of a transfer from one of our addresses. */
type ExportedOutgoing = Row<typeof shared>;

/** A position in the chain: a transfer's identity in a network, with its block. */
const place = { blockNumber: count, txId: hex(), logIndex: 'int4' } as const;
type ChainPlace = Row<typeof place>;

/** Returns the position of the last transfer sent from a project's addresses. */
const findNewestOutgoing = rowOf(
  'export-newest-outgoing',
  place,
  `select ${listColumns(place, 'o.')} from outgoing_transfers o
   where o.project_id = $1 order by o.block_number desc, o.tx_id desc, o.log_index desc limit 1`,
  (projectId: string) => [projectId],
);

/** Returns the next transfers from a project's addresses after the position `after` and up to `last`, in chain order. */
const findOutgoingAfter = rowsOf(
  'export-outgoing',
  { ...shared, from: 'address' },
  `select ${listColumns(shared, 't.', { from: addressColumn('a'), to: 't.to_address' })}
   from (
     select * from outgoing_transfers u
     where project_id = $1 and ${outgoingNotAnnulled('u')} and (block_number, tx_id, log_index) > ($2::int8, decode($3, 'hex'), $4::int4)
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

/** An export can have any size, so a command writes it while it's being read. */
const exportTransfersOperation = localOperation({
  action: 'exportTransfers',
  command: 'transfers export',
  does: 'export all transfers for your bookkeeping',
  isExport: true,
  input: Type.Object({
    ...{ projectId: projectId(), format: exportFormat() },
    direction: line('<direction>', 'in, out (sent from your addresses), or both (incoming transfers first)', {
      default: 'in',
    }),
    kind: line('<kind>', 'kind of incoming transfers: unmatched, duplicate, matched or all', { default: 'all' }),
    ...period(),
    output: exportFile(),
  }),
  read: ({ projectId, direction = 'in', kind = 'all', ...times }) => ({
    ...{ projectId, ...readSelection({ direction, kind, ...times }) },
  }),
  run: async (deps: { db: Sql }, actor, wanted) => {
    const batches = await exportTransfers(deps, actor, wanted);
    return { columns: EXPORT_COLUMNS, batches, name: 'transfer', plural: 'transfers' };
  },
});

export const operations = [exportTransfersOperation];
