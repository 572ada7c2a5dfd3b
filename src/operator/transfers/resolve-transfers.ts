import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { describeDecision, describeTransfer, newEvent } from '../../domain/event.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { isResolution, RESOLUTIONS, type ResolutionKind } from '../../domain/resolution.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { RecordedAction } from '../../store/access/audit-log.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { insertEvents } from '../../store/outbox/events.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip, quote } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { spotSecret } from '../input/spot-secret.ts';
import { recordActions } from '../record-actions.ts';
import { describeResolution } from './describe-transfer.ts';
import {
  findNamedInvoice,
  findResolutions,
  insertResolutions,
  type LockedTransfer,
  lockTransfers,
  type NamedInvoice,
} from './transfer-desk.ts';
import { noTransferId } from './transfer-input.ts';
import { findTransfers, type TransferRecord } from './transfer-records.ts';
import type { ResolvedView } from './views.ts';

/** More than a person decides on at once; a day of dust is resolved in a few commands. */
const MAX_RESOLVED = 500;
const NOTHING = 'nothing was resolved';

/** An operator's decision about transfers (UUIDs, at most 500). `invoice`: the one that the money was for, `inv_…` or an external id. */
/** `seenAt`: when the resolution that the person saw was made, `null` for none; absent where that does not matter. */
export type ResolveRequest = {
  transferIds: readonly string[];
  resolution: ResolutionKind;
  note: string;
  invoice: string | null;
  seenAt?: string | null;
};

/** The UUIDs of transfers (`trf_…`). Errors: `INVALID_ARGUMENT`, with all problems. */
export function readTransferIds(texts: readonly string[]): string[] {
  const ids = texts.map((text) => decodeId('trf', text));
  const problems: FieldProblem[] = texts.flatMap((text, index) => {
    if (ids[index] !== null) return [];
    return [{ subject: spotSecret(text) === null ? text.slice(0, 60) : 'transfers', message: noTransferId(text) }];
  });
  if (texts.length > MAX_RESOLVED) {
    const message = `${texts.length} transfers were given: resolve at most ${MAX_RESOLVED} at once`;
    problems.push({ subject: 'transfers', message });
  }
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', NOTHING, { problems });
  return ids.filter((id) => id !== null);
}

/** Errors: `INVALID_ARGUMENT`. */
export function readResolution(text: string): ResolutionKind {
  if (isResolution(text)) return text;
  throw new FieldError('resolution', `is ${clip(text)}: choose ${RESOLUTIONS.join(', ')}`);
}

/** An `inv_…` or an external id, whose bound is longer. PostgreSQL takes no NUL. Errors: `INVALID_ARGUMENT`. */
export function readInvoiceName(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (text !== '' && text.length <= 400 && !text.includes('\0')) return text;
  throw new FieldError('invoice', `is ${clip(text)}: give inv_… or an externalId`);
}

/**
 * Records a decision about transfers that paid nothing: for all of them or, if one cannot be resolved, for none. Earlier records
 * stay. The shop is told in the same transaction, and the page of an invoice that the decision settles asks for no payment. No invoice
 * changes its status, because only one exact transfer makes an invoice `PAID`. Errors: `NOT_FOUND`, `CONFLICT`.
 */
export function resolveTransfers(
  { db, now, random }: { db: Database; now(): UnixMs; random: Random },
  actor: Actor,
  { resolution, note, ...request }: ResolveRequest,
): Promise<ResolvedView> {
  const transferIds = [...new Set(request.transferIds)];
  if (transferIds.length > MAX_RESOLVED) {
    throw new RangeError(
      `${transferIds.length} transfers were given, and at most ${MAX_RESOLVED} are resolved at once`,
    );
  }
  return db.transaction(async (tx) => {
    const decision = await lockDecision(tx, actor, { ...request, transferIds });
    const detail = { resolution, note, invoiceId: decision.invoice && encodeId('inv', decision.invoice.id) };
    const done = { action: 'transfer.resolved', detail } as const;
    return recordDecision(tx, actor, { ...decision, resolution, note, resolvedAt: now(), done, random });
  });
}

type Random = (bytes: number) => Uint8Array;

type Decision = {
  transfers: readonly LockedTransfer[];
  invoice: NamedInvoice | null;
  before: Awaited<ReturnType<typeof findResolutions>>;
};

/** Holds transfers that can be resolved until the transaction ends. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function lockDecision(
  tx: Sql,
  actor: Actor,
  { transferIds, invoice: name, seenAt }: Pick<ResolveRequest, 'transferIds' | 'invoice' | 'seenAt'>,
): Promise<Decision> {
  const transfers = (await lockTransfers(tx, transferIds)).filter(({ projectId }) => maySee(actor, projectId));
  refuseUnresolvable(transferIds, transfers);
  const invoice = name === null ? null : await findInvoice(tx, transfers, name);
  const before = await findResolutions(tx, transferIds);
  refuseChanged(transferIds, before, seenAt);
  return { transfers, invoice, before };
}

/** Writes the events, the resolutions, and the rows of the audit log, which come last in a transaction. */
export async function recordDecision(
  tx: Sql,
  actor: Actor,
  {
    transfers,
    invoice,
    before,
    resolution,
    note,
    resolvedAt,
    done,
    random,
  }: Decision &
    Pick<ResolveRequest, 'resolution' | 'note'> & {
      resolvedAt: UnixMs;
      done: { action: RecordedAction; detail: object };
      random: Random;
    },
): Promise<ResolvedView> {
  const resolvedBy = actor.name;
  const records = await findTransfers(
    tx,
    transfers.map(({ id }) => id),
  );
  const decided = describeDecision({ resolution, invoice, resolvedAt });
  if (records.length !== transfers.length) throw new Error('a transfer vanished; transfers are never deleted');
  const told = records.map((transfer, index) => {
    return { transfer, event: newEvent(draftOf(transfer, decided), { timestamp: resolvedAt, random, index }) };
  });
  for (const network of new Set(records.map((transfer) => transfer.network))) {
    const here = told.filter(({ transfer }) => transfer.network === network).map(({ event }) => event);
    await insertEvents(tx, network, here, resolvedAt);
  }
  const common = { resolution, note, invoiceId: invoice?.id ?? null, resolvedBy };
  const rows = told.map(({ transfer: { id: transferId, projectId }, event }) => {
    return { ...common, projectId, transferId, eventId: event.id };
  });
  await insertResolutions(tx, rows, resolvedAt);
  const actions = transfers.map(({ id, projectId }) => ({ ...done, projectId, subject: encodeId('trf', id) }));
  await recordActions(tx, actor, resolvedAt, actions);
  return {
    ...describeResolution({ resolution, note, invoice, resolvedBy, resolvedAt }),
    transfers: transfers.map(({ id }) => {
      const inForce = before.get(id)?.at(-1);
      return { transferId: encodeId('trf', id), before: inForce === undefined ? null : describeResolution(inForce) };
    }),
  };
}

function draftOf(transfer: TransferRecord, resolution: object) {
  const { id: transferId, projectId, address: to, invoice } = transfer;
  const data = { ...describeTransfer({ ...transfer, to, invoiceId: invoice?.id ?? null }), resolution };
  return { type: 'transfer.resolved', projectId, invoiceId: null, transferId, sequence: 1, data } as const;
}

function refuseUnresolvable(ids: readonly string[], transfers: readonly LockedTransfer[]): void {
  const unknown = ids
    .filter((id) => !transfers.some((transfer) => transfer.id === id))
    .map((id) => encodeId('trf', id));
  refuseAny(
    'NOT_FOUND',
    NOTHING,
    unknown.map((subject) => ({ subject, message: `there is no transfer ${subject}` })),
  );
  const named = transfers.map((transfer) => ({ ...transfer, subject: encodeId('trf', transfer.id) }));
  const annulled = named.filter(({ isAnnulled }) => isAnnulled);
  refuseAny(
    'CONFLICT',
    NOTHING,
    annulled.map(({ subject }) => {
      return { subject, message: `${subject} never came: the chain denies it, and it was taken back` };
    }),
  );
  const matched = named.filter(({ kind }) => kind === 'matched');
  refuseAny(
    'CONFLICT',
    `${NOTHING}: what paid its invoice is settled, and PAID is never left`,
    matched.map(({ subject, externalId }) => {
      return { subject, message: `${subject} paid the invoice ${quote(externalId ?? '')}` };
    }),
  );
}

/** A form that is sent twice, or in two tabs, decides once. */
function refuseChanged(
  ids: readonly string[],
  before: Awaited<ReturnType<typeof findResolutions>>,
  seenAt: string | null | undefined,
): void {
  if (seenAt === undefined) return;
  const problems = ids.flatMap((id) => {
    const inForce = before.get(id)?.at(-1);
    if ((inForce === undefined ? null : toIso(inForce.resolvedAt)) === seenAt) return [];
    const by = inForce === undefined ? 'nobody' : inForce.resolvedBy;
    const subject = encodeId('trf', id);
    return [{ subject, message: `${subject} was resolved by ${by} meanwhile: look again before you decide` }];
  });
  refuseAny('CONFLICT', NOTHING, problems);
}

function refuseAny(code: 'NOT_FOUND' | 'CONFLICT', message: string, problems: FieldProblem[]): void {
  if (problems.length > 0) throw new AppError(code, message, { problems });
}

async function findInvoice(tx: Sql, transfers: readonly LockedTransfer[], name: string) {
  const [projectId = '', ...others] = new Set(transfers.map((transfer) => transfer.projectId));
  if (others.length > 0) {
    throw new AppError(
      'CONFLICT',
      say`${NOTHING}: the transfers belong to several projects, and ${{ field: 'invoice' }} names one of one project; resolve them apart`,
    );
  }
  const invoice = await findNamedInvoice(tx, projectId, { id: decodeId('inv', name), externalId: name });
  if (invoice !== null) return invoice;
  throw new AppError(
    'NOT_FOUND',
    `${NOTHING}: project ${encodeId('prj', projectId)}, which got the money, has no invoice ${clip(name)}`,
  );
}
