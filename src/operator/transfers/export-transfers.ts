import { encodeId, NIL_UUID } from '../../domain/ids.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/mismatch/diagnose-transfers.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Project } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { readPeriod } from '../input/read-period.ts';
import { selectProject } from '../select-project.ts';
import {
  type ChainPlace,
  type ExportedOutgoing,
  type ExportedTransfer,
  type ExportFilter,
  findIncomingAfter,
  findNewestOutgoing,
  findNewestTransfer,
  findOutgoingAfter,
} from './ledger-export.ts';
import { readKinds } from './transfer-input.ts';

/** A line of an export: a transfer, the facts that only an incoming one has, and the likeliest reason why it paid nothing. */
export type ExportRow = {
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
