import { encodeId, firstIdOf } from '../../../core/domain/ids.ts';
import { isLate } from '../../../core/domain/invoice.ts';
import { convertedPriceOf, readOptions } from '../../../core/domain/invoice-options.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { describePrice } from '../../../core/domain/price.ts';
import { SETTLING } from '../../../core/domain/resolution.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { TimelineEntry } from '../../../core/domain/timeline.ts';
import { compareTransfers } from '../../../core/payments/mismatch/diagnose-transfers.ts';
import { listOperatorActions } from '../../../core/store/access/audit-log.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { count } from '../../../core/store/db/statement.ts';
import { notAnnulled } from '../../../core/store/ledger/annulments.ts';
import { shorten } from '../input/problems.ts';
import { findResolutions, findTransfers, type TransferRecord } from '../subjects/transfer-export.ts';
import type { Explanation } from './explanation.ts';
import {
  type DescribedDelivery,
  type DescribedTransfer,
  describePosition,
  isTampered,
  ledgerOf,
  MAX_EVENTS,
  MAX_SHOWN,
  omit,
  readDeliveries,
  readEntry,
  readLedgerPosition,
} from './facts.ts';
import {
  bindInvoice,
  type ExplainedInvoice,
  findEventsOfInvoice,
  findEventsOfTransfers,
  findExplainedInvoice,
  findSetAsideOfInvoice,
  findSightingsOfInvoice,
  type LocatedInvoice,
  MAX_COUNTED,
} from './statements.ts';
import {
  describeAction,
  describeAnnulment,
  describeEvent,
  describeOutcome,
  describeStatuses,
  isInProgress,
  timelineOfTransfer,
} from './timeline.ts';
import {
  describeResolved,
  first,
  judge,
  judgeSetAside,
  nameOf,
  type Sentence,
  stepsToResolve,
  TAMPERED,
  usdt,
  type Verdict,
} from './verdict.ts';

/** Explains one invoice. `now` is used to decide whether the ledger is lagging behind. */
export async function explainInvoice(db: Sql, located: LocatedInvoice, now: UnixMs): Promise<Explanation> {
  const invoice = await findExplainedInvoice(db, located.projectId, located.id);
  if (invoice === null) throw new Error(`invoice ${located.id} disappeared, although invoices are never deleted`);
  const facts = await readInvoiceFacts(db, invoice, now);
  const { payment, duplicates, near } = facts;
  return {
    ...judgeInvoice(facts),
    ...describeInvoice(facts),
    timeline: [
      ...describeCreation(invoice),
      ...facts.actions.map(describeAction),
      ...describeStatuses(facts),
      ...[...(payment === null ? [] : [payment]), ...duplicates.shown, ...near].flatMap(timelineOfTransfer),
      ...[...facts.events, ...facts.transferEvents].flatMap(describeEvent),
    ],
    omissions: facts.omissions,
  };
}

function describeInvoice({ invoice, position }: InvoiceFacts): Pick<Explanation, 'subject' | 'fields'> {
  const { externalId, network, address, policy, retiredAt, requestedMicro, payableMicro, status } = invoice;
  const [invoiceId, projectId] = [encodeId('inv', invoice.id), encodeId('prj', invoice.projectId)];
  const [requestedAmount, payableAmount] = [formatAmount(requestedMicro), formatAmount(payableMicro)];
  const [createdAt, expiresAt] = [toIso(invoice.createdAt), toIso(invoice.expiresAt)];
  const tail = formatAmount(microUsdt(payableMicro - requestedMicro));
  const sum =
    payableMicro === requestedMicro ? 'the requested amount' : `${requestedAmount} requested plus a tail of ${tail}`;
  const { description, returnUrl, metadata } = readOptions(invoice.options);
  const price = convertedPriceOf(invoice.options);
  const retired = retiredAt === null ? '' : `; retired since ${toIso(retiredAt)}, still watched`;
  return {
    subject: {
      ...{ form: 'invoice', invoiceId, externalId, projectId, network, status, requestedAmount, payableAmount },
      ...{ address, policy, createdAt, expiresAt, ledger: ledgerOf(position) },
      ...(price && { price }),
    },
    fields: [
      ['invoice', invoiceId],
      ['external id', externalId],
      ['project', `${projectId} (${invoice.projectName}, ${network})`],
      ['status', status],
      ['to pay', `${payableAmount} USDT (${sum})`],
      ...(price === null ? [] : [['price', describePrice(price)] as const]),
      ['to', `${address} (policy ${policy}${retired})`],
      ['until', `${expiresAt}; a later payment still counts`],
      ...(description === undefined ? [] : [['for', description] as const]),
      ...(returnUrl === undefined ? [] : [['return URL', returnUrl] as const]),
      ...Object.entries(metadata ?? {}).map(([name, value]) => [`metadata ${name}`, value] as const),
      ['ledger', describePosition(position)],
    ],
  };
}

/** Describes the key that created the invoice, its amount and reserved address, and whether its page was withdrawn. */
function describeCreation(invoice: ExplainedInvoice): TimelineEntry[] {
  const { apiKey, idempotencyKey, externalId, createdAt: at, address, policy, withdrawnAt } = invoice;
  const [requestedAmount, payableAmount] = [formatAmount(invoice.requestedMicro), formatAmount(invoice.payableMicro)];
  const apiKeyId = apiKey && encodeId('key', apiKey.id);
  const expiresAt = toIso(invoice.expiresAt);
  const entries: TimelineEntry[] = [
    {
      ...{ at, kind: 'requested', text: `${requestedAmount} USDT for ${shorten(externalId)}` },
      details: [
        apiKey === null
          ? 'the API key was not recorded at that time'
          : `by ${apiKeyId}${apiKey.name === null ? '' : ` (${shorten(apiKey.name)})`}`,
        `Idempotency-Key: ${shorten(idempotencyKey)}`,
      ],
      data: { apiKeyId, apiKeyName: apiKey?.name ?? null, idempotencyKey, externalId, requestedAmount },
    },
    {
      at,
      kind: 'allocated',
      text: `exactly ${payableAmount} USDT at ${address}, permanently reserved for this invoice`,
      details: [
        policy === 'exact'
          ? 'policy exact: the requested amount, on an address where no other invoice has this amount'
          : `policy ${policy}: ${formatAmount(microUsdt(invoice.payableMicro - invoice.requestedMicro))} more than requested, an amount that no other invoice has on this address`,
        `payable until ${expiresAt}; a later payment still counts`,
      ],
      data: { payableAmount, address, policy, expiresAt },
    },
  ];
  if (withdrawnAt === null) return entries;
  const text =
    'the shop withdrew the page, so payers see no amount and no address; a payment that arrives anyway still pays the invoice';
  return [...entries, { at: withdrawnAt, kind: 'withdrawn', text, details: [], data: {} }];
}

/** Reads everything that explains an invoice. `now` is used to decide whether the ledger is lagging behind. */
async function readInvoiceFacts(db: Sql, invoice: ExplainedInvoice, now: UnixMs) {
  const duplicates = await findDuplicates(db, invoice, MAX_SHOWN);
  const { paidTransferId } = invoice;
  const exactIds = [...(paidTransferId === null ? [] : [paidTransferId]), ...duplicates.ids];
  const { compared, nearIds, unmatched } = await findNear(db, invoice, exactIds);
  const ids = [...exactIds, ...nearIds];
  const records = await findTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const own = await findEventsOfInvoice(db, invoice, MAX_EVENTS);
  // The payment's event belongs to the invoice and is listed there.
  const others = (await findEventsOfTransfers(db, ids, MAX_EVENTS)).filter(({ type }) => !type.startsWith('invoice.'));
  const ofInvoice = await readDeliveries(db, own.toReversed());
  const ofOthers = await readDeliveries(db, others);
  const transfers = records.map((transfer): DescribedTransfer => {
    const { causes = [], fit = null } = compared.get(transfer.id) ?? {};
    return { transfer, causes, fit, resolutions: resolutions.get(transfer.id) ?? [] };
  });
  const made = await listOperatorActions(db, encodeId('inv', invoice.id));
  const actions = [...made, ...(await listOperatorActions(db, invoice.address))].filter(
    ({ projectId, actedAt }) => projectId === invoice.projectId && actedAt >= invoice.createdAt,
  );
  return {
    invoice,
    actions: actions.slice(-MAX_SHOWN),
    sightings: await findSightingsOfInvoice(db, invoice, MAX_SHOWN),
    setAside: (await findSetAsideOfInvoice(db, invoice, MAX_SHOWN)).map(readEntry),
    payment: transfers.find(({ transfer }) => transfer.id === paidTransferId) ?? null,
    /** Later transfers of exactly its amount, newest last. */
    duplicates: {
      shown: transfers.filter(({ transfer }) => duplicates.ids.includes(transfer.id)),
      total: duplicates.total,
    },
    /** Transfers that an operator has linked to the invoice, and unmatched transfers that may have been meant for it, likeliest first. */
    near: nearIds.flatMap((id) => transfers.find(({ transfer }) => transfer.id === id) ?? []),
    unmatched,
    isTampered: await isTampered(db, [invoice.network], [invoice.id, ...ids]),
    /** The events are in sequence order. */
    events: ofInvoice.events,
    transferEvents: ofOthers.events,
    position: await readLedgerPosition(db, invoice.network, now),
    omissions: [
      omit('transfers of exactly this amount after the payment', duplicates.ids.length, duplicates.total),
      omit('unmatched transfers that may be meant for this invoice', MAX_SHOWN, unmatched.fitting),
      omit('unmatched transfers compared with this invoice', unmatched.compared, unmatched.total),
      omit('events of the invoice', own.length, invoice.eventCount),
      { what: 'deliveries of these events', ...ofInvoice.deliveries },
      { what: 'deliveries of events of the transfers', ...ofOthers.deliveries },
    ],
  };
}

/** Finds unmatched transfers that are linked to the invoice, or that were probably meant for it. */
async function findNear(db: Sql, invoice: ExplainedInvoice, exactIds: readonly string[]) {
  const linked = await findLinkedTransfers(db, invoice, MAX_SHOWN);
  const others = linked.filter((id) => !exactIds.includes(id));
  // Returns the oldest, the newest and those nearest in amount, up to the limit for each of these groups.
  const { total, isAll, ids } = await findCandidates(db, invoice, MAX_SHOWN);
  const resolutions = await findResolutions(db, ids);
  // If an operator has linked a transfer to another invoice, or marked it as the merchant's own, it's settled.
  const isElsewhere = (id: string) => {
    const last = resolutions.get(id)?.at(-1);
    return last?.resolution === 'own-deposit' || (last?.invoice != null && last.invoice.id !== invoice.id);
  };
  const duplicateIds = exactIds.filter((id) => id !== invoice.paidTransferId);
  const compared = await compareTransfers(db, [...new Set([...ids, ...others, ...duplicateIds])], invoice);
  const isResolved = (id: string) => Number(resolutions.has(id));
  const share = (id: string) => compared.get(id)?.fit?.share ?? 0;
  const fitting = ids
    .filter((id) => compared.get(id)?.fit != null && !isElsewhere(id) && !others.includes(id))
    .toReversed()
    .sort((a, b) => isResolved(a) - isResolved(b) || share(b) - share(a));
  // `compared` is the number of unmatched transfers since the invoice's creation that went to its address or have one of its amounts.
  // `isAll` is false if there may be more.
  return {
    nearIds: [...others, ...fitting.slice(0, MAX_SHOWN)],
    compared,
    unmatched: { total, isAll, compared: ids.length, fitting: fitting.length },
  };
}

type InvoiceFacts = Awaited<ReturnType<typeof readInvoiceFacts>>;

const isOpen = ({ resolutions }: DescribedTransfer) => resolutions.length === 0;

/** A text such as `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z`. */
const nameTransfer = ({ amountMicro, from, blockTime }: TransferRecord) =>
  `${usdt(amountMicro)} from ${from} at ${toIso(blockTime)}`;
/** Includes the id, which is needed to resolve the transfer. */
const nameOpen = ({ transfer }: DescribedTransfer) => `${nameTransfer(transfer)} (${encodeId('trf', transfer.id)})`;
const atLeast = (count: number, isAll: boolean) => (isAll ? String(count) : `At least ${count}`);

/** Judges the invoice's state, related transfers that didn't pay it, what delays it, and whether the shop was notified. */
function judgeInvoice(facts: InvoiceFacts): Verdict {
  const { invoice, events, near, setAside, position } = facts;
  const { status, withdrawnAt } = invoice;
  const isPaid = status === 'PAID';
  // A transfer's current resolution that names the invoice also closed the invoice's page.
  const settling = near.find(({ resolutions, transfer }) => {
    const last = resolutions.at(-1);
    return last?.invoice?.id === invoice.id && SETTLING.includes(last.resolution) && transfer.annulment === null;
  });
  return judge(
    facts.isTampered && TAMPERED,
    judgeStatus(facts),
    !isPaid &&
      withdrawnAt !== null &&
      `The shop withdrew the invoice at ${toIso(withdrawnAt)}, so its page no longer asks for payment. A payment that arrives anyway still pays the invoice.`,
    !isPaid &&
      settling &&
      `Its page no longer asks for payment, because ${nameOpen(settling)} was accepted for this invoice. An exact payment that arrives anyway still pays the invoice.`,
    ...setAside.map(judgeSetAside),
    judgeDuplicates(facts),
    ...judgeNear(facts),
    !isPaid && position.trouble !== null && `Note that ${position.trouble}.`,
    ...judgeNotification(events.at(-1)),
  );
}

function judgeStatus({ invoice, payment, sightings, setAside, events, near, unmatched }: InvoiceFacts): string {
  const { expiresAt, payableMicro, address } = invoice;
  const name = nameOf(invoice);
  const wanted = `exactly ${usdt(payableMicro)} at ${address}`;
  const arrived = first(
    setAside.some(({ transfer }) => transfer !== null) && 'An exact transfer has arrived, but is not recorded yet.',
    // A sighting without a payment was orphaned.
    events.some(({ event }) => event.type === 'invoice.confirming') &&
      'The transfer is no longer on the chain, because its block was orphaned. The transfer may appear again in another block.',
    (near.length > 0 || unmatched.total > 0) && 'No exact transfer has arrived.',
    'Nothing has arrived.',
  );
  const last = events.at(-1)?.event;
  const expired = last === undefined ? 'is EXPIRED' : `has been EXPIRED since ${toIso(last.createdAt)}`;
  const [seen, ...others] = sightings;
  const where = seen === undefined ? '' : ` in block ${seen.blockNumber} (${toIso(seen.blockTime)})`;
  const pay =
    others.length === 1
      ? 'transfer of exactly this amount follows and pays'
      : 'transfers of exactly this amount follow and pay';
  const more = others.length === 0 ? '' : ` ${others.length} more ${pay} no invoice.`;
  const { annulment = null } = payment?.transfer ?? {};
  const when =
    payment !== null && isLate(payment.transfer.blockTime, expiresAt)
      ? `after its deadline of ${toIso(expiresAt)}, but the payment still counts`
      : 'in time';
  const paid = payment && `${toIso(payment.transfer.decidedAt)}: ${nameTransfer(payment.transfer)}, ${when}`;
  return {
    PAID: first(
      annulment &&
        `${name} has been PAID since ${paid}. But ${describeAnnulment(annulment)}. The invoice stays PAID, although this transfer did not pay it.`,
      paid !== null && `${name} has been PAID since ${paid}.`,
      `${name} is PAID.`,
    ),
    CONFIRMING: `${name} is CONFIRMING: the exact transfer was seen${where}. The invoice becomes PAID when the block is irreversible, usually within two minutes.${more}`,
    PENDING: `${name} is waiting for ${wanted} until ${toIso(expiresAt)}. ${arrived}`,
    EXPIRED: `${name} ${expired} and is still payable: it is waiting for ${wanted}. ${arrived}`,
  }[invoice.status];
}

function judgeDuplicates({ payment, duplicates: { shown, total } }: InvoiceFacts): Sentence {
  const open = shown.filter(isOpen);
  const newest = open.at(-1) ?? shown.at(-1);
  if (newest === undefined) return null;
  const example = open.length === 0 ? '' : `, for example ${nameOpen(newest)}`;
  return [
    first(
      payment?.transfer.annulment &&
        `Another transfer of exactly this amount is on the chain: ${nameOpen(newest)}. ${describeResolved(newest)}`,
      total === 1 && `The invoice was paid twice: ${nameOpen(newest)} pays no invoice. ${describeResolved(newest)}`,
      `${atLeast(total, total < MAX_COUNTED)} more transfers of the same amount arrived and pay no invoice. Of the newest ${shown.length}, ${open.length} ${open.length === 1 ? 'is' : 'are'} not resolved${example}.`,
    ),
    ...stepsToResolve(newest),
  ];
}

/** Judges transfers that may be meant for the invoice, and how certain that is: open ones first, then the likeliest. */
function judgeNear({ invoice, near, unmatched }: InvoiceFacts): Sentence[] {
  // The exact transfer arrived, so any other transfer is extra.
  const hasExact = invoice.status === 'PAID' || invoice.status === 'CONFIRMING';
  const best = near.find(isOpen) ?? near[0];
  if (best === undefined) {
    const { total, isAll, compared } = unmatched;
    const arrived = total === 1 && isAll ? 'unmatched transfer has' : 'unmatched transfers have';
    const none =
      compared < total
        ? `None of the ${compared} compared transfers looks`
        : total === 1
          ? 'It does not look'
          : 'None of them looks';
    return [
      total > 0 &&
        !hasExact &&
        `${atLeast(total, isAll)} ${arrived} arrived since the invoice was created, at its address or with one of its amounts. ${none} like a mistaken payment for this invoice, but this is never certain.`,
    ];
  }
  const name = nameOpen(best);
  const isLinked = best.resolutions.at(-1)?.invoice?.id === invoice.id;
  const isSure = isLinked || best.fit?.cause.confidence === 'high';
  const others = near.length - 1 + Math.max(0, unmatched.fitting - near.filter(({ fit }) => fit !== null).length);
  const resolved = describeResolved(best);
  const also = hasExact ? 'In addition, ' : '';
  const cause = best.fit?.cause ?? best.causes[0];
  return [
    [
      first(
        isSure && hasExact && `In addition, ${name} arrived, but it pays no invoice. ${resolved}`,
        isSure && `Instead, ${name} arrived, but it pays no invoice. ${resolved}`,
        others === 0 && `${also}1 unmatched transfer may be meant for this invoice: ${name}. ${resolved}`,
        `${also}${others + 1} unmatched transfers may be meant for this invoice. The most likely transfer is ${name}. ${resolved}`,
      ),
      ...stepsToResolve(best),
    ],
    cause && `Likely (${cause.confidence}): ${cause.explanation}`,
    isSure && others === 1 && '1 more unmatched transfer may be meant for this invoice, but is less likely; see below.',
    isSure &&
      others > 1 &&
      `${others} more unmatched transfers may be meant for this invoice, but are less likely; see below.`,
  ];
}

/** Judges from the last event whether the shop knows the current status. */
function judgeNotification(last: InvoiceFacts['events'][number] | undefined): Sentence[] {
  if (last === undefined || last.deliveries === null) return [];
  const { type } = last.event;
  if (last.deliveries.length === 0)
    return [`${type} was not sent, because no webhook endpoint was active at that time.`];
  const open = last.deliveries.filter(({ delivery }) => delivery.status !== 'delivered');
  if (open.length === 0) return [`The shop has received ${type}.`];
  return open.slice(0, 3).map((described) => judgeDelivery(type, described));
}

function judgeDelivery(type: string, described: DescribedDelivery): Sentence {
  const { url, status, attemptCount, lastStatus, lastError, nextAttemptAt, endpointDisabled } = described.delivery;
  const subject = `${shorten(url)} has not received ${type}`;
  const hasFailed = lastStatus !== null || lastError !== null;
  const why = hasFailed ? `: ${describeOutcome({ status: lastStatus, error: lastError })}` : '';
  return first(
    status === 'dead' && `${subject}${why}. All ${attemptCount} attempts failed, and Quittance has stopped trying.`,
    endpointDisabled && `${subject}, because the endpoint is disabled (${shorten(endpointDisabled.reason, 200)}).`,
    isInProgress(described) &&
      `${subject} yet${why}. Attempt ${attemptCount} is in progress. If it returns no result, the next attempt follows at ${toIso(nextAttemptAt)}.`,
    `${subject} yet${why}. The next attempt is due at ${toIso(nextAttemptAt)}.`,
  );
}

/** Returns an invoice's newest duplicates and their number, counted up to 100,000. */
const findDuplicates = answerOf(
  'explain-duplicates',
  { id: 'uuid', total: count },
  `select id, (select count(*) from (
       select from transfers t
       where project_id = $1 and kind = 'duplicate' and invoice_id = $2 and ${notAnnulled('t')} limit ${MAX_COUNTED}) d) as total
   from transfers t where project_id = $1 and kind = 'duplicate' and invoice_id = $2 and ${notAnnulled('t')}
   order by id desc limit $3`,
  bindInvoice,
  (rows) => ({ ids: rows.map(({ id }) => id), total: rows[0]?.total ?? 0 }),
);

/** An address may receive dust for years, so only this many of the oldest and of the newest unmatched transfers are read. */
const READ = 2000;
/** A row is written after its block, and our clock may differ from the chain's by this much. */
const CLOCK_ERROR_MS = 600_000;

/**
 * Finds unmatched transfers that may have been meant for an invoice: they arrived after it was created, at its address or with one of its
 * amounts. Returns the `limit` oldest, the `limit` newest and the `limit` nearest in amount, and how many there are in total. A mistaken
 * payment usually arrives soon after its invoice or has a similar amount, and operators usually ask about today's transfers. So only the
 * oldest and newest 2,000 in the project are read. `isAll` is false if there may be more.
 */
export const findCandidates = answerOf(
  'explain-candidates',
  { id: 'uuid', total: count, isAll: 'bool' },
  `with first as materialized (
     select id, kind, block_time, address_id, amount_micro from transfers t
     where project_id = $1 and kind <> 'matched' and id >= $7 and ${notAnnulled('t')} order by id limit ${READ}),
   last as materialized (
     select id, kind, block_time, address_id, amount_micro from transfers t
     where project_id = $1 and kind <> 'matched' and id >= $7 and ${notAnnulled('t')} order by id desc limit ${READ}),
   near as materialized (
     select id, amount_micro from (select * from first union select * from last) ends
     where kind = 'unmatched' and block_time > $3 and (address_id = $2 or amount_micro in ($4::int8, $5::int8)))
   select id, (select count(*) from near) as total, (select count(*) from first) < ${READ} as is_all
   from ((select id from near order by id limit $6) union (select id from near order by id desc limit $6)
     union (select id from near order by abs(amount_micro - $4::int8), id limit $6)) ends
   order by id`,
  (
    invoice: Pick<
      ExplainedInvoice,
      'projectId' | 'createdAt' | 'payableAfter' | 'requestedMicro' | 'payableMicro' | 'addressId'
    >,
    limit: number,
  ) => [
    invoice.projectId,
    invoice.addressId,
    new Date(invoice.payableAfter),
    invoice.payableMicro,
    invoice.requestedMicro,
    limit,
    firstIdOf(invoice.createdAt - CLOCK_ERROR_MS),
  ],
  (rows) => ({ ids: rows.map(({ id }) => id), total: rows[0]?.total ?? 0, isAll: rows[0]?.isAll ?? true }),
);

/** Finds transfers whose newest resolution links them to an invoice. */
const findLinkedTransfers = answerOf(
  'explain-linked-transfers',
  { transferId: 'uuid' },
  `select distinct transfer_id from (
     select transfer_id from transfer_resolutions l
     where invoice_id = $2 and project_id = $1
       and not exists (select from transfer_annulments n where n.transfer_id = l.transfer_id)
     order by id desc limit $3) r`,
  bindInvoice,
  (rows) => rows.map((row) => row.transferId),
);
