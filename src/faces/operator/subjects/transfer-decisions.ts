import { assertNever } from '../../../core/domain/assert-never.ts';
import { AppError, conflict, type FieldProblem, notFound } from '../../../core/domain/errors.ts';
import { describeDecision, describeRefund, describeTransfer, newEvent } from '../../../core/domain/event.ts';
import { decodeId, encodeId } from '../../../core/domain/ids.ts';
import { readTransactionReference } from '../../../core/domain/lookup/pasted.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt, microUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { RecordedAction } from '../../../core/domain/recorded-action.ts';
import {
  findRefund,
  type NoRefund,
  noteProblem,
  RESOLUTIONS,
  type ResolutionKind,
  readResolution,
} from '../../../core/domain/resolution.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { hexSeal, sealColumn } from '../../../core/store/db/seal.ts';
import { SEALED_OUTGOING, SEALED_RESOLUTION } from '../../../core/store/db/sealed-tables.ts';
import { text as column, count, isAsSealed, micro, type Row, statement } from '../../../core/store/db/statement.ts';
import { notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import { insertRefund } from '../../../core/store/ledger/transfer-refunds.ts';
import { insertEvents } from '../../../core/store/outbox/events.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText } from '../command-words.ts';
import { id, list, maybe, of, part, type Shown, schemaOf, show } from '../fields.ts';
import { clip, detectSecret, FieldError, fieldProblem, gatherProblems, quote } from '../input/problems.ts';
import { notAnId, readId, readNote } from '../input/readers.ts';
import { type OperationDeps, operation } from '../operation.ts';
import { argument, argumentList, line, needed } from '../option.ts';
import { recordActions } from '../record-actions.ts';
import { findNamedInvoice } from '../select.ts';
import {
  findResolutions,
  findTransfers,
  type Resolution,
  type TransferKind,
  type TransferRecord,
} from './transfer-export.ts';
import { refundFields, resolutionFields } from './transfers.ts';

/** No transaction that refunds transfers contains this many of them. */
const MAX_SENT = 500;

/**
 * Returns the transfers in a transaction that come from a project's addresses, each with the transfer that it refunds (UUID). Rows with a
 * wrong seal are left out.
 */
const findSentBack = answerOf(
  'refund-candidates',
  {
    ...{ logIndex: 'int4', blockNumber: count, blockTime: 'timestamptz', from: 'address', to: 'text' },
    ...{ amountMicro: micro<MicroUsdt>(), stands: 'bool', refundOf: 'uuid?' },
    isSound: isAsSealed(SEALED_OUTGOING, { isOfOther: true }),
  },
  `select o.log_index, o.block_number, o.block_time, ${addressColumn('a')} as "from", o.to_address as "to", o.amount_micro,
     ${outgoingNotAnnulled('o')} as stands,
     (select f.transfer_id from transfer_refunds f
      where f.network = o.network and f.tx_id = o.tx_id and f.log_index = o.log_index) as refund_of,
     ${sealColumn(SEALED_OUTGOING, 'o.')} as is_sound
   from outgoing_transfers o join addresses a on a.id = o.address_id
   where o.network = $1 and o.tx_id = decode($2, 'hex') and o.project_id = $3 order by o.log_index, o.correction limit ${MAX_SENT}`,
  (network: Network, txId: string, projectId: string) => [network, txId, projectId],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/** The new resolution, and the previous one. */
const resolvedFields = {
  ...resolutionFields,
  transfers: list(part({ transferId: of('id', id('trf')), before: maybe(part(resolutionFields)) })),
};
type ResolvedView = Shown<typeof resolvedFields>;

/** No one decides on more transfers than this at once. A day of dust needs only a few commands. */
const MAX_RESOLVED = 500;
const NOTHING = 'nothing was resolved';

/**
 * An operator's decision about transfers (UUIDs, at most 500). `invoice` is the invoice that the money was for: an `inv_…` or an external
 * id. `seenAt` is the time of the resolution that the person saw, or `null` if there was none; absent if that doesn't matter.
 */
type ResolveRequest = {
  transferIds: readonly string[];
  resolution: ResolutionKind;
  note: string;
  invoice: string | null;
  seenAt?: string | null;
};

type DecideDeps = Pick<OperationDeps, 'db' | 'now' | 'random'>;

const invoiceInput = line('<invoice>', 'invoice that the money was meant for: inv_… or the externalId');
const BY = { help: 'name of the person who decided (default: your user name)' };

/**
 * Records a decision about transfers that paid nothing. If one of them can't be resolved, none of them is. Earlier resolutions are kept. In
 * the same transaction, the shop is notified, and the page of an invoice that the decision settles stops asking for a payment. No invoice
 * changes its status, because only an exact transfer makes an invoice `PAID`. Throws `NOT_FOUND` or `CONFLICT`.
 */
export const resolveTransfers = operation({
  action: 'resolveTransfers',
  summary:
    'Record how you resolved unmatched transfers; your shop is notified by `transfer.resolved`. No invoice changes its status, but the page of an invoice that you fulfilled manually stops asking for payment',
  route: 'POST /transfers/resolve',
  command: 'transfers resolve',
  does: 'record how you resolved unmatched transfers; this never changes an invoice',
  by: BY,
  output: schemaOf(resolvedFields),
  input: Type.Object({
    transfers: argumentList('<transfers...>', 'trf_…; Quittance resolves all of them or none'),
    resolution: needed('<resolution>', 'refunded, fulfilled-manually, own-deposit or kept'),
    note: line('<text>', 'note for your records, such as the refund transaction'),
    invoice: invoiceInput,
  }),
  read: (given): ResolveRequest => {
    const problems: FieldProblem[] = [];
    const transferIds = gatherProblems(problems, () => readTransferIds(given.transfers));
    const resolution = gatherProblems(problems, () => needResolution(given.resolution));
    const note = readNote(given.note, problems);
    const invoice = gatherProblems(problems, () => readInvoiceName(given.invoice));
    if (transferIds === undefined || resolution === undefined || invoice === undefined || problems.length > 0) {
      throw new AppError('INVALID_ARGUMENT', NOTHING, { problems });
    }
    return { transferIds, resolution, note, invoice };
  },
  run: async ({ db, now, random }: DecideDeps, actor, { resolution, note, ...request }: ResolveRequest) => {
    const transferIds = [...new Set(request.transferIds)];
    if (transferIds.length > MAX_RESOLVED) {
      throw new RangeError(
        `${transferIds.length} transfers were given, but at most ${MAX_RESOLVED} can be resolved at a time`,
      );
    }
    return db.transaction(async (tx) => {
      const decision = await lockDecision(tx, actor, { ...request, transferIds });
      const detail = { resolution, note, invoiceId: decision.invoice && encodeId('inv', decision.invoice.id) };
      const done = { action: 'transfer.resolved', detail } as const;
      return recordDecision(tx, actor, { ...decision, resolution, note, at: now(), done, random });
    });
  },
  print: (done) => {
    const hadBefore = done.transfers.some(({ before }) => before !== null);
    const kept = hadBefore ? '\nthe previous resolution stays in the history' : '';
    return { text: `${resolvedText(done)}${kept}`, next: adviceOnResolved(done) };
  },
});

function resolvedText({ resolution, transfers }: ResolvedView): string {
  return columnsText(transfers, [
    ['TRANSFER', 'transferId'],
    ['RESOLUTION', () => resolution],
    [
      'BEFORE',
      ({ before }) => (before === null ? 'open' : `${before.resolution} by ${before.resolvedBy}, ${before.resolvedAt}`),
    ],
  ]);
}

function adviceOnResolved({ resolution, invoice }: ResolvedView): string {
  const which =
    invoice === null ? 'no invoice changed' : `the invoice ${quote(invoice.externalId)} stays ${invoice.status}`;
  if (resolution !== 'fulfilled-manually') return which;
  return `${which}: PAID always means one transfer of exactly the payable amount, so record the fulfilment in your own system`;
}

/** Reads the UUIDs of transfers (`trf_…`). Throws `INVALID_ARGUMENT`, with all problems. */
function readTransferIds(texts: readonly string[]): string[] {
  const ids = texts.map((text) => decodeId('trf', text));
  const problems: FieldProblem[] = texts.flatMap((text, index) => {
    if (ids[index] !== null) return [];
    return [{ subject: detectSecret(text) === null ? text.slice(0, 60) : 'transfers', message: notAnId('trf', text) }];
  });
  if (texts.length > MAX_RESOLVED) {
    const message = `${texts.length} transfers were given: resolve at most ${MAX_RESOLVED} at a time`;
    problems.push({ subject: 'transfers', message });
  }
  refuseAny('INVALID_ARGUMENT', NOTHING, problems);
  return ids.filter((id) => id !== null);
}

/** Throws `INVALID_ARGUMENT`. */
function needResolution(text: string): ResolutionKind {
  const kind = readResolution(text);
  if (kind !== null) return kind;
  throw new FieldError('resolution', `is ${clip(text)}: choose ${RESOLUTIONS.join(', ')}`);
}

/** Reads an `inv_…` or an external id, which may be longer. PostgreSQL can't store NUL. Throws `INVALID_ARGUMENT`. */
function readInvoiceName(text: string | undefined): string | null {
  if (text === undefined) return null;
  if (text !== '' && text.length <= 400 && !text.includes('\0')) return text;
  throw new FieldError('invoice', `is ${clip(text)}: use inv_… or an externalId`);
}

type Decision = Awaited<ReturnType<typeof lockDecision>>;

type Decided = Decision &
  Pick<ResolveRequest, 'resolution' | 'note'> &
  Pick<DecideDeps, 'random'> & { at: UnixMs; done: { action: RecordedAction; detail: object } };

/** Locks transfers that can be resolved until the transaction ends. Throws `NOT_FOUND` or `CONFLICT`. */
async function lockDecision(
  tx: Sql,
  actor: Actor,
  { transferIds, invoice: name, seenAt }: Pick<ResolveRequest, 'transferIds' | 'invoice' | 'seenAt'>,
) {
  const transfers = (await lockTransfers(tx, transferIds)).filter(({ projectId }) => maySee(actor, projectId));
  refuseUnresolvable(transferIds, transfers);
  const invoice = name === null ? null : await findInvoice(tx, transfers, name);
  const before = await findResolutions(tx, transferIds);
  refuseChanged(transferIds, before, seenAt);
  return { transfers, invoice, before };
}

/** Writes the events and resolutions, then the audit log entries, which must come last in a transaction. */
async function recordDecision(
  tx: Sql,
  actor: Actor,
  { transfers, invoice, before, resolution, note, at: resolvedAt, done, random }: Decided,
): Promise<ResolvedView> {
  const resolvedBy = actor.name;
  const ids = transfers.map(({ id }) => id);
  const records = await findTransfers(tx, ids);
  const decided = { resolution: describeDecision({ resolution, invoice, resolvedAt }) };
  if (records.length !== transfers.length)
    throw new Error('a transfer disappeared, although transfers are never deleted');
  const told = records.map((transfer, index) => {
    const draft = draftOf('transfer.resolved', transfer, decided);
    return { transfer, event: newEvent(draft, { timestamp: resolvedAt, random, index }) };
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
  return show(resolvedFields, {
    ...{ resolution, note, invoice, resolvedBy, resolvedAt },
    transfers: transfers.map(({ id }) => ({ id, before: before.get(id)?.at(-1) ?? null })),
  });
}

function draftOf(type: 'transfer.resolved' | 'transfer.refunded', transfer: TransferRecord, decided: object) {
  const { id: transferId, projectId, address: to, invoice } = transfer;
  const data = { ...describeTransfer({ ...transfer, to, invoiceId: invoice?.id ?? null }), ...decided };
  return { type, projectId, invoiceId: null, transferId, sequence: 1, data } as const;
}

function refuseUnresolvable(ids: readonly string[], transfers: readonly LockedTransfer[]): void {
  const problemOf = (id: string, problem: (subject: string) => string) => {
    const subject = encodeId('trf', id);
    return { subject, message: problem(subject) };
  };
  const unknown = ids
    .filter((id) => !transfers.some((transfer) => transfer.id === id))
    .map((id) => problemOf(id, (subject) => `there is no transfer ${subject}`));
  refuseAny('NOT_FOUND', NOTHING, unknown);
  const annulled = transfers
    .filter(({ isAnnulled }) => isAnnulled)
    .map(({ id }) => problemOf(id, (subject) => `${subject} was annulled, because it is not on the chain`));
  refuseAny('CONFLICT', NOTHING, annulled);
  const matched = transfers
    .filter(({ kind }) => kind === 'matched')
    .map(({ id, externalId }) => problemOf(id, (subject) => `${subject} paid the invoice ${quote(externalId ?? '')}`));
  const why = 'a transfer that paid its invoice needs no resolution, because PAID is final';
  refuseAny('CONFLICT', `${NOTHING}: ${why}`, matched);
}

/** Prevents a form that is submitted twice, or open in two tabs, from deciding twice. */
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
    return [{ subject, message: `${subject} was resolved by ${by} in the meantime: check it again before you decide` }];
  });
  refuseAny('CONFLICT', NOTHING, problems);
}

function refuseAny(code: 'NOT_FOUND' | 'CONFLICT' | 'INVALID_ARGUMENT', message: string, problems: FieldProblem[]) {
  if (problems.length > 0) throw new AppError(code, message, { problems });
}

async function findInvoice(tx: Sql, transfers: readonly LockedTransfer[], name: string) {
  const [projectId = '', ...others] = new Set(transfers.map((transfer) => transfer.projectId));
  if (others.length > 0)
    throw conflict`${NOTHING}: the transfers belong to several projects, but ${{ field: 'invoice' }} belongs to one; resolve them separately`;
  const invoice = await findNamedInvoice(tx, projectId, { id: decodeId('inv', name), externalId: name });
  if (invoice !== null) return invoice;
  throw notFound`${NOTHING}: project ${encodeId('prj', projectId)}, which received the money, has no invoice ${clip(name)}`;
}

const locked = {
  id: 'uuid',
  projectId: 'uuid',
  kind: column<TransferKind>(),
  isAnnulled: 'bool',
  externalId: 'text?',
} as const;

type LockedTransfer = Row<typeof locked>;

/** Locks transfers until the transaction ends so that concurrent decisions see each other's result. */
const lockTransfers = rowsOf(
  'desk-lock',
  locked,
  `select t.id, t.project_id, t.kind, not ${notAnnulled('t')} as is_annulled,
     (select external_id from invoices where project_id = t.project_id and id = t.invoice_id) as external_id
   from lock_transfers($1::uuid[]) locked join transfers t on t.id = locked order by t.id`,
  (ids: readonly string[]) => [ids],
);

/** `eventId` (UUID) is its `transfer.resolved` event, which must be recorded first. */
type NewResolution = Omit<Resolution, 'invoice' | 'resolvedAt'> & {
  projectId: string;
  invoiceId: string | null;
  eventId: string;
};

const addResolutions = statement(
  'resolution-insert',
  {},
  `insert into transfer_resolutions (project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at, is_untold, event_id, mac)
   select (r->>'projectId')::uuid, (r->>'transferId')::uuid, r->>'resolution', r->>'note', (r->>'invoiceId')::uuid,
     r->>'resolvedBy', $2, false, (r->>'eventId')::uuid, decode(r->>'mac', 'hex')
   from jsonb_array_elements($1::text::jsonb) with ordinality as entries (r, place) order by place`,
);

/** Adds resolutions. Constraints refuse matched transfers and invoices from another project. */
async function insertResolutions(tx: Sql, resolutions: readonly NewResolution[], now: UnixMs): Promise<void> {
  const sealer = await tx.sealer();
  const rows = resolutions.map((row) => ({
    ...row,
    mac: hexSeal(sealer, SEALED_RESOLUTION, { ...row, resolvedAt: now }),
  }));
  await tx.run(addResolutions, [JSON.stringify(rows), new Date(now)]);
}

/**
 * `transferId` is a UUID. `txId` is the transaction (64 hex characters) that sent the money back. The stored `note` will contain it. The
 * other members are the same as for `resolveTransfers`.
 */
type RefundRequest = { transferId: string; txId: string } & Pick<ResolveRequest, 'note' | 'invoice' | 'seenAt'>;

/**
 * Links a transfer that paid nothing to its refund. The ledger must have the refund: sent from an address in the same project to the
 * sender, for exactly the amount, in a later block. Resolves the transfer as `refunded` and notifies the shop, in one transaction. Throws
 * `NOT_FOUND` or `CONFLICT`.
 */
export const refundTransfer = operation({
  action: 'refundTransfer',
  summary:
    "Link an unmatched transfer to the transfer that refunded it in full from one of the project's addresses; your shop is notified by `transfer.refunded` and `transfer.resolved`",
  route: 'POST /transfers/:transferId/refund',
  command: 'transfers refund',
  does: 'record the refund of a transfer by its transaction, which must be in the ledger; your shop is notified',
  by: BY,
  output: schemaOf({ ...resolvedFields, refund: part(refundFields) }),
  input: Type.Object({
    transferId: argument('<transfer>', 'trf_… of an unmatched transfer', 'trf_…'),
    tx: needed(
      '<transaction>',
      "transaction that returned the full amount to the sender, from one of the project's addresses",
      {
        wire: 'The refund transaction: 64 hexadecimal characters, or its Tronscan link',
      },
    ),
    note: line('<text>', 'note for your records, in addition to the transaction'),
    invoice: invoiceInput,
  }),
  read: (given): RefundRequest => {
    const problems: FieldProblem[] = [];
    const transferId = readId('trf', given.transferId);
    const txId = gatherProblems(problems, () => readRefundTx('tx', given.tx));
    const note = readRefundNote(txId ?? '', given.note, problems);
    const invoice = gatherProblems(problems, () => readInvoiceName(given.invoice));
    if (txId === undefined || invoice === undefined || problems.length > 0) {
      throw new AppError('INVALID_ARGUMENT', NOTHING, { problems });
    }
    return { transferId, txId, note, invoice };
  },
  run: ({ db, now, random }: DecideDeps, actor, { transferId, txId, note, ...request }: RefundRequest) => {
    return db.transaction(async (tx) => {
      const decision = await lockDecision(tx, actor, { ...request, transferIds: [transferId] });
      const [came] = await findTransfers(tx, [transferId]);
      if (came === undefined)
        throw new Error(`${encodeId('trf', transferId)} disappeared, although transfers are never deleted`);
      const found = findRefund(came, await findSentBack(tx, came.network, txId, came.projectId));
      if (found.kind !== 'found') throw conflict`${NOTHING}: ${whyNoRefund(came, txId, found)}`;
      const { sent } = found;
      const refundedAt = now();
      const { projectId, network } = came;
      const tie = { transferId, projectId, network, txId, logIndex: sent.logIndex, refundedAt };
      if (!(await insertRefund(tx, tie))) throw await tied(tx, came);
      const refund = describeRefund({ ...sent, txId }, came);
      const draft = draftOf('transfer.refunded', came, { refund });
      await insertEvents(tx, network, [newEvent(draft, { timestamp: refundedAt, random })], refundedAt);
      const { invoice } = decision;
      const detail = { txId, logIndex: sent.logIndex, note, invoiceId: invoice && encodeId('inv', invoice.id) };
      const done = { action: 'transfer.refunded' as const, detail };
      const decided = { ...decision, resolution: 'refunded', note, at: refundedAt, done, random } as const;
      return { ...(await recordDecision(tx, actor, decided)), refund };
    });
  },
  print: (done) => {
    const { amount, from, to, txId, logIndex, blockNumber } = done.refund;
    const went = `${amount} USDT was refunded from ${from} to ${to}, in block ${blockNumber}, transaction ${txId}, log ${logIndex}`;
    return { text: `${resolvedText(done)}\n${went}`, next: adviceOnResolved(done) };
  },
});

/** The note contains the refund's transaction so that people can find it from lists and exports. */
function nameRefund(txId: string): string {
  return `refund tx ${txId}`;
}

/** Reads the person's own note, which follows the name of the refund. Problems are added to `given`, or thrown without it. */
export function readRefundNote(txId: string, text: string | undefined, given?: FieldProblem[]): string {
  const problems = given ?? [];
  const own = readNote(text, problems);
  const note = own === '' ? nameRefund(txId) : `${nameRefund(txId)}; ${own}`;
  const problem = problems.length > 0 ? null : noteProblem(note);
  if (problem !== null) problems.push(fieldProblem('note', problem));
  if (given === undefined && problems.length > 0) throw new AppError('INVALID_ARGUMENT', NOTHING, { problems });
  return note;
}

/** Reads the id of the refund's transaction, from the id or its Tronscan link. Throws `INVALID_ARGUMENT`. */
export function readRefundTx(field: string, text: string): string {
  const transaction = readTransactionReference(text.trim());
  if (transaction.kind === 'id') return transaction.txId;
  throw new FieldError(field, `is ${clip(text)}: use a TRON transaction id (64 characters) or its Tronscan link`);
}

/**
 * Explains a conflict: someone else has already linked one of the two transfers, or the refund is linked to a transfer that the chain now
 * denies.
 */
async function tied(tx: Sql, { id }: TransferRecord): Promise<AppError> {
  const refund = (await findTransfers(tx, [id]))[0]?.refund;
  const by = refund == null ? 'to another transfer' : `to the transfer in ${refund.txId}`;
  return conflict`${NOTHING}: ${encodeId('trf', id)} is already linked ${by}`;
}

function whyNoRefund({ id, from, amountMicro, blockNumber }: TransferRecord, txId: string, why: NoRefund): Text {
  const args = [encodeId('trf', id)];
  const elsewhere = say`if the money was sent from a different wallet or to a different address, record the refund as a note instead: "${{ command: 'transfers resolve', args, input: { resolution: 'refunded', note: nameRefund(txId) } }}"`;
  switch (why.kind) {
    case 'none-left':
      return say`the ledger has no transfer from an address of this project in transaction ${txId}. Quittance records a transfer when its block is irreversible, about a minute after it was sent: try again then. And ${elsewhere}`;
    case 'denied':
      return `the recorded transfer of transaction ${txId} was annulled, because it is not on the chain`;
    case 'other-recipient':
      return say`the transfer came from ${from}, but transaction ${txId} sent money to ${why.recipients.slice(0, 3).join(', ')}: ${elsewhere}`;
    case 'other-amount': {
      const [size, how] = why.differenceMicro < 0n ? [-why.differenceMicro, 'less'] : [why.differenceMicro, 'more'];
      return say`transaction ${txId} sent ${formatAmount(microUsdt(size))} USDT ${how} than the ${formatAmount(amountMicro)} received; ${elsewhere}`;
    }
    case 'too-early':
      return `transaction ${txId} is in block ${why.sent.blockNumber}, but the transfer was received later, in block ${blockNumber}`;
    case 'taken':
      return `transaction ${txId} is already the refund of ${encodeId('trf', why.refundOf)}`;
    default:
      return assertNever(why);
  }
}

export const operations = [resolveTransfers, refundTransfer];
