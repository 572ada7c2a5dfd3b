import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { BURNED_TO } from '../../domain/contract-event.ts';
import type { EventType } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { isLate } from '../../domain/invoice.ts';
import type { Cause } from '../../domain/mismatch.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import type { OperatorAction } from '../../store/access/audit-log.ts';
import type { Annulment } from '../../store/ledger/standing.ts';
import { soundRefund } from '../../store/ledger/transfer-refunds.ts';
import { accountToAddress } from '../../tron/address.ts';
import { shorten } from '../input/clip.ts';
import type { Resolution, TransferRecord } from '../subjects/transfer-records.ts';
import { viewCause } from '../subjects/transfers.ts';
import type { DescribedDelivery, DescribedEvent, DescribedTransfer, InvoiceFacts } from './facts.ts';
import {
  type ExplainedAddress,
  type ExplainedAttempt,
  type ExplainedEvent,
  type ExplainedInvoice,
  type ExplainedOutgoing,
  type ExplainedSighting,
  transactionOf,
} from './statements.ts';

/** What was done, behind the name of who did it. */
export const DONE: Record<OperatorAction['action'], string> = {
  'address.added': 'added the address',
  'address.proposed': 'proposed the address, to be added a day later or when another owner confirms it',
  'address.confirmed': 'confirmed the address',
  'address.withdrawn': 'withdrew the address: it was not added',
  'address.failed': 'could not add the address',
  'address.derived': 'derived the address and added it',
  'address.retired': 'retired the address: it takes no new invoices and is watched for ever',
  'address.activated': 'took the address into use again',
  'project.changed': 'changed the project',
  'project.archived': 'archived the project: it takes no new invoices',
  'project.unarchived': 'put the archived project back',
  'project.created': 'made the project',
  'key.created': 'made the API key',
  'key.revoked': 'revoked the API key',
  'admin-key.created': 'made the admin key',
  'admin-key.revoked': 'revoked the admin key',
  'master-key.rotated': 'rotated the master key',
  'receipt-key.rotated': 'made a new signing key of receipts',
  'ledger.sealed': 'sealed the rows that had no seal',
  'row.accepted': 'sealed anew the row that was changed',
  'webhook.added': 'added the endpoint',
  'webhook.changed': 'changed the endpoint',
  'webhook.enabled': 'enabled the endpoint',
  'webhook.disabled': 'disabled the endpoint',
  'webhook.rotated': 'gave the endpoint a new secret',
  'webhook.tested': 'sent a test to the endpoint',
  'channel.added': 'added the notification channel',
  'channel.tested': 'sent a test by the notification channel',
  'channel.removed': 'removed the notification channel',
  'invoice.created': 'made the invoice by hand',
  'invoice.withdrawn': 'withdrew the page of the invoice',
  'transfer.resolved': 'resolved the transfer',
  'transfer.refunded': 'tied the transfer to its refund',
  'producers.accepted': 'took over the producers that nodes name now',
  'alarm.acknowledged': 'closed alarms',
  'backup.requested': 'asked for a backup',
  'backup.created': 'made a backup',
  'backup.verified': 'had a backup examined',
  'backup.restored': 'restored a backup',
  'backup.accepted': 'accepted a copy of the ledger',
  'user.invited': 'invited the person',
  'user.joined': 'took up the invitation',
  'user.changed': 'changed the role of the person',
  'user.reset': 'took from the person what it signs in with, and invited it again',
  'user.removed': 'removed the person',
  'passkey.added': 'added a passkey',
  'passkey.removed': 'removed a passkey',
  'session.started': 'signed in',
  'session.refused': 'was refused with the right password and no valid code',
  'session.stepped-up': 'proved again who it is',
  'session.ended': 'ended the session',
  'deliveries.replayed': 'sent webhooks again',
  'block.passed': 'let a block pass that no node could prove',
  'chain.rescanned': 'read blocks again and recorded what was missing',
  'chain.resumed': 'let the watcher go on',
  'chain.repaired': 'brought the ledger back to what the chain has',
};

/** What an operator did to an address, a project or an endpoint. */
export function describeAction({ action, actedBy, actedAt, detail, subject }: OperatorAction): TimelineEntry {
  const known = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
  const words = known.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return {
    ...{ at: actedAt, kind: 'operator', text: `${shorten(actedBy)} ${DONE[action]}` },
    details: words.length === 0 ? [] : [shorten(words.join(', '), 300)],
    data: { action, by: actedBy, subject, detail },
  };
}

/** Which key asked for the invoice, which amount and address were reserved for it, and that its page was withdrawn. */
export function describeCreation(invoice: ExplainedInvoice): TimelineEntry[] {
  const { apiKey, idempotencyKey, externalId, createdAt: at, address, policy, withdrawnAt } = invoice;
  const [requestedAmount, payableAmount] = [formatAmount(invoice.requestedMicro), formatAmount(invoice.payableMicro)];
  const apiKeyId = apiKey && encodeId('key', apiKey.id);
  const expiresAt = toIso(invoice.expiresAt);
  const entries: TimelineEntry[] = [
    {
      ...{ at, kind: 'requested', text: `${requestedAmount} USDT for ${shorten(externalId)}` },
      details: [
        apiKey === null
          ? 'by which key is not known: that was not noted then'
          : `by ${apiKeyId}${apiKey.name === null ? '' : ` (${shorten(apiKey.name)})`}`,
        `Idempotency-Key: ${shorten(idempotencyKey)}`,
      ],
      data: { apiKeyId, apiKeyName: apiKey?.name ?? null, idempotencyKey, externalId, requestedAmount },
    },
    {
      ...{ at, kind: 'allocated', text: `exactly ${payableAmount} USDT at ${address}, reserved for ever` },
      details: [
        policy === 'exact'
          ? 'policy exact: the requested amount itself, on an address where nobody else has it'
          : `policy ${policy}: ${formatAmount(microUsdt(invoice.payableMicro - invoice.requestedMicro))} more than requested, which nobody else has there`,
        `to be paid until ${expiresAt}`,
      ],
      data: { payableAmount, address, policy, expiresAt },
    },
  ];
  if (withdrawnAt === null) return entries;
  const text = 'by the shop: its page shows no way to pay; a payment that comes all the same pays';
  return [...entries, { at: withdrawnAt, kind: 'withdrawn', text, details: [], data: {} }];
}

/** What the chain showed before anything was irreversible, and the deadline. */
export function describeStatuses({ events, sightings }: Pick<InvoiceFacts, 'events' | 'sightings'>): TimelineEntry[] {
  const list = events.map(({ event }) => event);
  const described = list.flatMap((event, index) => DESCRIBE_STATUS[event.type]?.(event, list[index - 1]) ?? []);
  const known = new Set(list.map(transactionOf).map((sent) => sent && `${sent.txId} ${sent.blockNumber}`));
  const moved = sightings.filter(({ txId, blockNumber }) => !known.has(`${txId} ${blockNumber}`));
  return [...described, ...moved.map(describeSighting)];
}

type DescribeStatus = (event: ExplainedEvent, before: ExplainedEvent | undefined) => TimelineEntry[];

/** The status that each event tells of; `null`: it tells of none, or transfers and deliveries have entries of their own. */
const DESCRIBE_STATUS: Readonly<Record<EventType, DescribeStatus | null>> = {
  'invoice.confirming': (event) => {
    const transaction = transactionOf(event);
    if (transaction === null) return [];
    const { txId, blockNumber, blockTime, from, amount } = transaction;
    const text = `exactly ${amount} USDT from ${from} in block ${blockNumber} of ${blockTime}, not irreversible yet: CONFIRMING`;
    const data = { txId, blockNumber, blockTime, from, amount };
    return [{ at: event.createdAt, kind: 'sighted', text, details: [`transaction ${txId}`], data }];
  },
  'invoice.pending': (event, before) => describeOrphaned(event, before, ': PENDING again'),
  'invoice.expired': (event, before) => {
    if (before?.type === 'invoice.confirming')
      return describeOrphaned(event, before, ', and the deadline is over: EXPIRED, still payable');
    const text = 'all blocks up to the deadline were examined, and none had the exact transfer: EXPIRED, still payable';
    return [{ at: event.createdAt, kind: 'expired', text, details: [], data: {} }];
  },
  'invoice.paid': null,
  'transfer.unmatched': null,
  'transfer.duplicate': null,
  'transfer.refunded': null,
  'transfer.claimed': null,
  'transfer.resolved': null,
  'endpoint.disabled': null,
  ping: null,
};

function describeOrphaned(
  { createdAt: at }: ExplainedEvent,
  before: ExplainedEvent | undefined,
  status: string,
): TimelineEntry[] {
  const { txId = null, blockNumber = null } = (before && transactionOf(before)) ?? {};
  const block = blockNumber === null ? 'its block' : `block ${blockNumber}`;
  const text = `${block} is no longer on the chain, and the transfer with it${status}`;
  return [{ at, kind: 'orphaned', text, details: [], data: { txId, blockNumber } }];
}

/** A sighting that stands now. */
export function describeSighting(sighting: ExplainedSighting): TimelineEntry {
  const { txId, logIndex, blockNumber, blockId, blockTime: at, from, invoiceId, externalId } = sighting;
  const amount = formatAmount(sighting.amountMicro);
  const text = `exactly ${amount} USDT from ${from}, what ${shorten(externalId)} waits for, in block ${blockNumber}, not irreversible yet`;
  return {
    ...{ at, kind: 'sighted', text, details: [`transaction ${txId}, log ${logIndex}`, `block id ${blockId}`] },
    data: { txId, logIndex, blockNumber, blockId, from, amount, invoiceId: encodeId('inv', invoiceId), externalId },
  };
}

/** A transfer's block with the evidence, what was decided, and what was done about it. */
export function describeTransfer(described: DescribedTransfer): TimelineEntry[] {
  const { transfer, resolutions } = described;
  const { txId, logIndex, blockNumber, blockId, from, address: to, network, nodes, verified, annulment } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const producer = transfer.producer === null ? null : accountToAddress(transfer.producer);
  const transferId = encodeId('trf', transfer.id);
  const block: TimelineEntry = {
    at: transfer.blockTime,
    kind: 'transferred',
    text: `${amount} USDT from ${from} to ${to}, in block ${blockNumber}`,
    details: [
      `transaction ${txId}, log ${logIndex}`,
      `block id ${blockId}, made by ${producer ?? 'a producer that is not known: it was not noted then'}`,
      describeVerified(verified, nodes),
    ],
    data: {
      ...{ transferId, txId, logIndex, amount, from, to },
      ...{ network, blockNumber, blockId, producer, verified, nodes },
    },
  };
  return [
    block,
    describeDecision(described),
    ...resolutions.map(describeResolution),
    ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { transferId })]),
  ];
}

function describeVerified(verified: string, nodes: readonly string[]): string {
  const shownBy = nodes.length === 0 ? '' : `; shown by ${nodes.join(', ')}`;
  if (verified === 'proven') return `proven: the block's signed header commits to it${shownBy}`;
  if (verified === 'single-node') return `believed from a single node${shownBy}`;
  return `agreed: ${verified.replace('agreed:', '')} operators showed the same${shownBy}`;
}

function describeDecision({ transfer, causes, fit }: DescribedTransfer): TimelineEntry {
  const { kind, invoice, decidedAt: at } = transfer;
  const name = invoice === null ? '' : shorten(invoice.externalId);
  const late = invoice !== null && isLate(transfer.blockTime, invoice.expiresAt);
  const transferId = encodeId('trf', transfer.id);
  const text = {
    matched: `the block is irreversible, and this is exactly the amount of ${name}: it is PAID, ${late ? 'after its deadline, which counts all the same' : 'in time'}`,
    duplicate: `exactly the amount of ${name}, which was PAID before: this transfer pays nothing`,
    unmatched: 'no invoice reserves this amount on this address: this transfer pays nothing',
  }[kind];
  const data = {
    transferId,
    ...(invoice === null ? {} : { invoiceId: encodeId('inv', invoice.id), externalId: invoice.externalId, late }),
  };
  if (kind === 'matched') return { at, kind, text, details: [], data };
  const [likeliest] = causes;
  const own = fit?.cause;
  const isSame =
    likeliest?.code === own?.code &&
    likeliest?.confidence === own?.confidence &&
    likeliest?.invoices[0]?.id === own?.invoices[0]?.id;
  return {
    ...{ at, kind, text },
    details: [
      transferId,
      ...(own === undefined || isSame ? [] : [`for this invoice (${own.confidence}): ${own.explanation}`]),
      ...causes.flatMap((cause) => [`likely (${cause.confidence}): ${cause.explanation}`, ...listNear(cause)]),
    ],
    data: {
      ...data,
      ...(own === undefined ? {} : { forThisInvoice: viewCause(own) }),
      causes: causes.map(viewCause),
    },
  };
}

/** The nearest first, where one has to choose among several. */
function listNear({ code, invoices }: Cause): string[] {
  if (invoices.length < 2 || code === 'SUM_OF_INVOICES') return [];
  const names = invoices.map(({ externalId, payableMicro, status, differenceMicro }) => {
    return `${shorten(externalId, 40)} ${formatAmount(payableMicro)} ${status} (${formatSigned(differenceMicro)})`;
  });
  return [`  near: ${names.join(', ')}`];
}

function describeResolution(resolved: Resolution): TimelineEntry {
  const { resolution, note, invoice, resolvedBy: by } = resolved;
  const transferId = encodeId('trf', resolved.transferId);
  const linked = invoice === null ? '' : `, for ${shorten(invoice.externalId)}`;
  const text = `${shorten(by)} resolved the transfer as ${resolution}${linked}`;
  return {
    ...{ at: resolved.resolvedAt, kind: 'resolved', text },
    details: [transferId, ...(note === '' ? [] : [`note: ${shorten(note, 300)}`])],
    data: {
      ...{ transferId, resolution, note, by, invoiceId: invoice && encodeId('inv', invoice.id) },
      externalId: invoice?.externalId ?? null,
    },
  };
}

/** `data` names the transfer. */
function toAnnulmentEntry({ deniedBy, at, by, reason }: Annulment, data: TimelineEntry['data']): TimelineEntry {
  const text = `${shorten(by)} took the transfer back, because the chain denies it: it counts no more`;
  return {
    ...{ at, kind: 'taken-back', text },
    details: [`reason: ${shorten(reason, 300)}`, `the chain has block ${deniedBy} there`],
    data: { ...data, by, reason, deniedBy },
  };
}

const NOBODY = accountToAddress(BURNED_TO);

/** A transfer that left one of our addresses. */
export function describeOutgoing(transfer: ExplainedOutgoing): TimelineEntry[] {
  const { address: from, to, txId, logIndex, blockNumber, blockId, verified, nodes, network, annulment } = transfer;
  const refundOf = refundedBy(transfer);
  const amount = formatAmount(transfer.amountMicro);
  const text =
    to === NOBODY
      ? `Tether destroyed ${amount} USDT that ${from} held, in block ${blockNumber}`
      : `${amount} USDT left ${from} for ${to}, in block ${blockNumber}`;
  const entry: TimelineEntry = {
    ...{ at: transfer.blockTime, kind: 'sent', text },
    details: [
      `transaction ${txId}, log ${logIndex}`,
      ...(refundOf === null ? [] : [`the refund of ${refundOf}`]),
      describeVerified(verified, nodes),
    ],
    data: {
      ...{ txId, logIndex, amount, from, to, network, blockNumber, blockId, verified, nodes },
      ...(refundOf === null ? {} : { refundOf }),
    },
  };
  return [entry, ...(annulment === null ? [] : [toAnnulmentEntry(annulment, { txId, logIndex })])];
}

/** In one line: `quittance explain <txid>` tells the rest. */
export function describeIncoming(transfer: TransferRecord): TimelineEntry {
  const { txId, logIndex, from, kind, invoice, blockTime, blockNumber, address: to, annulment } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const decided = invoice === null ? kind : `${kind}: ${shorten(invoice.externalId)}`;
  const what = annulment === null ? decided : `${decided}; ${describeAnnulment(annulment)}`;
  return {
    ...{ at: blockTime, kind: 'transferred', text: `${amount} USDT from ${from} to ${to}, ${what}` },
    details: [`transaction ${txId}, log ${logIndex}`],
    data: {
      ...{ transferId: encodeId('trf', transfer.id), match: kind, isTakenBack: annulment !== null },
      ...{ txId, logIndex, blockNumber, from, to, amount, invoiceId: invoice && encodeId('inv', invoice.id) },
      externalId: invoice?.externalId ?? null,
    },
  };
}

/** An address that no action tells of. */
export function describeAdding({ createdAt: at, position, policy }: ExplainedAddress): TimelineEntry {
  const text = `number ${position} of the project's addresses, policy ${policy}`;
  return { at, kind: 'added', text, details: ['by whom is not known: it was not noted'], data: { position, policy } };
}

export function describeBalance({ balance }: ExplainedAddress): TimelineEntry[] {
  if (balance === null) return [];
  const { checkedAt: at, checkedBlock, goodBlock, node } = balance;
  const [onChain, expected] = [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  const text = `${onChain} USDT on the chain at block ${checkedBlock}, ${expected} in the ledger`;
  const details = [`they were last equal at block ${goodBlock}; ${node} was asked`];
  return [{ at, kind: 'balance', text, details, data: { balance: onChain, expected, checkedBlock, goodBlock, node } }];
}

/** The event, its deliveries and their attempts. */
export function describeEvent({ event, deliveries }: DescribedEvent): TimelineEntry[] {
  const { type, sequence, createdAt: at } = event;
  const eventId = encodeId('evt', event.id);
  const place = type.startsWith('invoice.') ? `, number ${sequence} of this invoice` : '';
  const details = deliveries?.length === 0 ? ['sent to nobody: no webhook endpoint was active then'] : [];
  return [
    { at, kind: 'event', text: `${type}${place}: ${eventId}`, details, data: { eventId, type, sequence } },
    ...(deliveries ?? []).flatMap((described) => describeDelivery(event, described)),
  ];
}

/** The attempts that failed in a row as one entry, each delivered one, and the next attempt or the result of those that were not logged. */
export function describeDelivery(event: ExplainedEvent, described: DescribedDelivery): TimelineEntry[] {
  const runs: ExplainedAttempt[][] = [];
  for (const attempt of described.attempts) {
    const before = runs.at(-1);
    if (before === undefined || attempt.error === null || before.at(-1)?.error === null) runs.push([attempt]);
    else before.push(attempt);
  }
  const subject = `${event.type} to ${shorten(described.delivery.url)}`;
  return [...runs.flatMap((run) => describeRun(subject, described, run)), ...describeState(subject, described)];
}

/** The newest failures of a row that are listed one by one. */
const MAX_LISTED = 10;

/** One or more attempts: a receiver that is down for a day fails some 240. */
function describeRun(
  subject: string,
  { delivery }: DescribedDelivery,
  run: readonly ExplainedAttempt[],
): TimelineEntry[] {
  const before = run.length - 1;
  const others = before === 0 ? '' : `; the ${before === 1 ? 'attempt' : `${before} attempts`} before it failed too`;
  const list = run.map((made) => `${made.attempt} at ${toIso(made.at)}: ${describeOutcome(made)}`);
  return run.slice(-1).map(({ at, attempt, status, error }) => ({
    ...{ at, kind: 'attempt', text: `${attempt} of ${subject}: ${describeOutcome({ status, error })}${others}` },
    details: before === 0 ? [] : list.slice(-MAX_LISTED),
    data: {
      ...namesOf(delivery),
      ...(before === 0 ? {} : { firstAttempt: run[0]?.attempt, firstAt: run[0] && toIso(run[0].at) }),
      ...{ attempt, status, error, isDelivered: error === null },
    },
  }));
}

/** The facts about a delivery that its log of attempts does not show. */
function describeState(subject: string, described: DescribedDelivery): TimelineEntry[] {
  const { delivery, attempts } = described;
  const { status, attemptCount, nextAttemptAt, finishedAt, endpointDisabled } = delivery;
  const last = describeOutcome(lastOf(delivery));
  const entry = { kind: 'delivery', details: [], data: { ...namesOf(delivery), status, attemptCount } } as const;
  if (status === 'delivered') {
    // Delivered before attempts were logged.
    if (attempts.length > 0 || finishedAt === null) return [];
    return [{ ...entry, at: finishedAt, text: `${subject}: ${last}, at attempt ${attemptCount}` }];
  }
  if (status === 'dead') {
    const text = `${subject} is dead after attempt ${attemptCount}: ${last}`;
    return [{ ...entry, at: finishedAt ?? nextAttemptAt, text }];
  }
  if (endpointDisabled !== null) {
    const text = `${subject} waits: the endpoint is disabled (${shorten(endpointDisabled.reason, 200)})`;
    return [{ ...entry, at: endpointDisabled.at, text }];
  }
  if (isInProgress(described)) {
    const text = `${subject}: attempt ${attemptCount} is in progress; without a result the next one follows now`;
    return [{ ...entry, at: nextAttemptAt, text }];
  }
  const before = isLogged(described) ? '' : `; the last one: ${last}`;
  return [{ ...entry, at: nextAttemptAt, text: `${subject}: attempt ${attemptCount + 1} is due${before}` }];
}

/** Attempts of before they were logged have left only their last outcome. */
function isLogged({ delivery, attempts }: DescribedDelivery): boolean {
  return attempts.length > 0 || (delivery.lastStatus === null && delivery.lastError === null);
}

/** Whether the attempt that counted last has no outcome yet: it is being made, or the process that made it ended. */
export function isInProgress(described: DescribedDelivery): boolean {
  const { attempts, delivery } = described;
  const { attemptCount } = delivery;
  return isLogged(described) && attemptCount > 0 && !attempts.some(({ attempt }) => attempt === attemptCount);
}

type Outcome = Pick<ExplainedAttempt, 'status' | 'error'>;

/** `delivered, HTTP 204`, or why not. Errors begin with the HTTP status where one came. */
export function describeOutcome({ status, error }: Outcome): string {
  return error === null ? `delivered, HTTP ${status}` : shorten(error, 200);
}

function lastOf({ lastStatus, lastError }: DescribedDelivery['delivery']): Outcome {
  return { status: lastStatus, error: lastError };
}

function namesOf({ eventId, endpointId, url }: DescribedDelivery['delivery']) {
  return { eventId: encodeId('evt', eventId), endpointId: encodeId('whe', endpointId), url };
}

/** By whom, when and why a transfer was taken back. */
export function describeAnnulment({ at, by, reason }: Annulment): string {
  return `the chain denies this transfer: ${shorten(by)} took it back at ${toIso(at)} (${shorten(reason)})`;
}

/** Behind a resolution: by which transaction it was sent back. */
export function describeRefund(transfer: Pick<TransferRecord, 'refund'>): string {
  const refund = soundRefund(transfer.refund);
  return refund === null ? '' : `, and sent it back in transaction ${refund.txId}`;
}

/** The transfer (`trf_…`) that an outgoing one sent back. */
export function refundedBy({ refundOf, annulment }: ExplainedOutgoing): string | null {
  return refundOf?.isSound === true && annulment === null ? encodeId('trf', refundOf.transferId) : null;
}
