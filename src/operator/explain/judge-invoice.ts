import { assertNever } from '../../domain/assert-never.ts';
import { isLate } from '../../domain/invoice.ts';
import { formatAmount } from '../../domain/money.ts';
import { SETTLING } from '../../domain/resolution.ts';
import { toIso } from '../../domain/time.ts';
import { shorten } from '../input/clip.ts';
import type { TransferRecord } from '../subjects/transfer-records.ts';
import { MAX_COUNTED } from './candidate-queries.ts';
import { describeOutcome, isInProgress } from './delivery-entries.ts';
import type { DescribedEvent } from './event-entries.ts';
import type { InvoiceFacts } from './invoice-facts.ts';
import {
  type DescribedTransfer,
  describeAnnulment,
  describeRefund,
  nameOpenTransfer,
  nameTransfer,
} from './transfer-entries.ts';

/** Tells the state of an invoice, the transfers that are not its payment, whether the shop knows, and what stands in the way. */
export function judgeInvoice(facts: InvoiceFacts): string[] {
  const isPaid = facts.invoice.status === 'PAID';
  return [
    judgeStatus(facts),
    ...judgeWithdrawal(facts.invoice),
    ...judgeSettlement(facts),
    ...judgeDuplicates(facts),
    ...judgeNear(facts),
    ...(isPaid || facts.stand.trouble === null ? [] : [`Mind that ${facts.stand.trouble}.`]),
    ...judgeNotification(facts.events.at(-1)),
  ];
}

function judgeWithdrawal({ status, withdrawnAt }: InvoiceFacts['invoice']): string[] {
  if (withdrawnAt === null || status === 'PAID') return [];
  return [
    `The shop withdrew its page at ${toIso(withdrawnAt)}: it asks for no payment any more, and one that comes pays.`,
  ];
}

/** A decision in force that names it closed its page. */
function judgeSettlement({ invoice, near }: InvoiceFacts): string[] {
  if (invoice.status === 'PAID') return [];
  const settling = near.find(({ resolutions, transfer }) => {
    const last = resolutions.at(-1);
    return last?.invoice?.id === invoice.id && SETTLING.includes(last.resolution) && transfer.annulment === null;
  });
  if (settling === undefined) return [];
  return [
    `Its page asks for no payment, because ${nameOpenTransfer(settling.transfer)} was accepted for it; an exact payment that comes all the same pays.`,
  ];
}

function judgeStatus({ invoice, events, exact, sightings, near, unmatched }: InvoiceFacts): string {
  const { status, expiresAt } = invoice;
  const name = shorten(invoice.externalId, 60);
  const wanted = `exactly ${formatAmount(invoice.payableMicro)} USDT at ${invoice.address}`;
  const last = events.at(-1)?.event;
  // A sighting that led to nothing was orphaned.
  const isOrphaned = events.some(({ event }) => event.type === 'invoice.confirming');
  const arrived = isOrphaned
    ? 'the transfer that was seen is no longer on the chain, because its block was orphaned; it may come again in another block'
    : near.length > 0 || unmatched.total > 0
      ? 'nothing exact arrived'
      : 'nothing arrived';
  switch (status) {
    case 'PAID': {
      const payment = exact.find(({ transfer }) => transfer.kind === 'matched')?.transfer;
      if (payment === undefined) return `${name} is PAID.`;
      const when = isLate(payment.blockTime, expiresAt)
        ? `after its deadline of ${toIso(expiresAt)}, which counts all the same`
        : 'in time';
      const paid = `${name} is PAID since ${toIso(payment.decidedAt)}: ${nameTransfer(payment)}, ${when}.`;
      if (payment.annulment === null) return paid;
      return `${paid} But ${describeAnnulment(payment.annulment)}. PAID is never left, and nothing was paid by it.`;
    }
    case 'CONFIRMING': {
      const seen = sightings[0];
      const where = seen === undefined ? '' : ` in block ${seen.blockNumber} of ${toIso(seen.blockTime)}`;
      const more = sightings.length - 1;
      const again =
        more < 1
          ? ''
          : ` ${more} more of exactly this amount ${more === 1 ? 'comes after it and pays' : 'come after it and pay'} nothing.`;
      return `${name} is CONFIRMING: the exact transfer stands${where}, and is PAID as soon as that block is irreversible, normally within a minute or two.${again}`;
    }
    case 'PENDING':
      return `${name} waits for ${wanted} until ${toIso(expiresAt)}; ${arrived}.`;
    case 'EXPIRED':
      return `${name} is EXPIRED${last === undefined ? '' : ` since ${toIso(last.createdAt)}`} and still payable: it waits for ${wanted}; ${arrived}.`;
    default:
      return assertNever(status);
  }
}

function judgeDuplicates({ duplicateCount, exact }: InvoiceFacts): string[] {
  const duplicates = exact.filter(({ transfer }) => transfer.kind === 'duplicate').toReversed();
  const open = duplicates.filter(isOpen);
  const [newest = duplicates[0]] = open;
  if (newest === undefined) return [];
  const payment = exact.find(({ transfer }) => transfer.kind === 'matched')?.transfer;
  if (payment != null && payment.annulment !== null) {
    return [
      `Exactly its amount stands on the chain all the same: ${nameOpenTransfer(newest.transfer)}${describeResolved(newest)}.`,
    ];
  }
  if (duplicateCount === 1) {
    return [`It was paid twice: ${nameOpenTransfer(newest.transfer)} pays nothing${describeResolved(newest)}.`];
  }
  const example = open.length === 0 ? '' : `, as ${nameOpenTransfer(newest.transfer)}`;
  return [
    `${atLeast(duplicateCount, duplicateCount < MAX_COUNTED)} more transfers of the same amount came and pay nothing; of the newest ${duplicates.length}, ${open.length} are not resolved${example}.`,
  ];
}

/** Names the transfers that may be meant for it, with their certainty: open ones before resolved ones, then the likeliest. */
function judgeNear({ invoice, near, unmatched }: InvoiceFacts): string[] {
  // The exact transfer came; all else is more than that.
  const hasExact = invoice.status === 'PAID' || invoice.status === 'CONFIRMING';
  const best = bestNear(near);
  if (best === undefined) {
    if (unmatched.total === 0 || hasExact) return [];
    const came = unmatched.total === 1 && unmatched.isAll ? 'transfer that pays' : 'transfers that pay';
    const compared =
      unmatched.compared < unmatched.total ? `, and of the ${unmatched.compared} that were compared` : ', and';
    return [
      `${atLeast(unmatched.total, unmatched.isAll)} ${came} nothing came to its address or of its amounts since${compared} none becomes its amount by a usual mistake, or something else explains it far better; that is never certain.`,
    ];
  }
  const name = nameOpenTransfer(best.transfer);
  const linked = best.resolutions.at(-1)?.invoice?.id === invoice.id;
  const isSure = linked || best.fit?.cause.confidence === 'high';
  const others = near.length - 1 + Math.max(0, unmatched.fitting - near.filter(({ fit }) => fit !== null).length);
  const resolved = describeResolved(best);
  const also = hasExact ? 'In addition, ' : '';
  const first = isSure
    ? `${hasExact ? `In addition ${name} came` : `What came is ${name}`}, which pays nothing${resolved}.`
    : `${also}${others === 0 ? '1 transfer that pays' : `${others + 1} transfers that pay`} nothing may be meant for it${others === 0 ? '' : '; the likeliest'}: ${name}${resolved.replace(/^ and is/, ',')}.`;
  const cause = best.fit?.cause ?? best.causes[0];
  return [
    first,
    ...(cause === undefined ? [] : [`Likely (${cause.confidence}): ${cause.explanation}`]),
    ...(!isSure || others === 0
      ? []
      : [
          others === 1
            ? '1 more that pays nothing may be meant for it, but less likely; it stands below.'
            : `${others} more that pay nothing may be meant for it, but less likely; they stand below.`,
        ]),
  ];
}

/** The transfers to decide first: the newest open duplicate, and the open transfer that the verdict names. */
export function openTransfers({ exact, near }: InvoiceFacts): TransferRecord[] {
  const duplicate = exact.findLast((described) => described.transfer.kind === 'duplicate' && isOpen(described));
  const best = bestNear(near);
  return [duplicate, best].flatMap((described) =>
    described !== undefined && isOpen(described) ? [described.transfer] : [],
  );
}

/** `near` begins with the likeliest. */
function bestNear(near: InvoiceFacts['near']): DescribedTransfer | undefined {
  return near.find(isOpen) ?? near[0];
}

function isOpen({ resolutions }: DescribedTransfer): boolean {
  return resolutions.length === 0;
}

function atLeast(count: number, isAll: boolean): string {
  return isAll ? String(count) : `At least ${count}`;
}

function describeResolved({ transfer, resolutions }: DescribedTransfer): string {
  const last = resolutions.at(-1);
  return last === undefined
    ? ' and is not resolved'
    : `; ${shorten(last.resolvedBy)} resolved it as ${last.resolution}${describeRefund(transfer)}`;
}

/** Whether the shop knows the present status. */
function judgeNotification(last: DescribedEvent | undefined): string[] {
  if (last === undefined || last.deliveries === null) return [];
  const { event, deliveries } = last;
  if (deliveries.length === 0) {
    return [`Nobody was told of ${event.type}: no webhook endpoint was active then.`];
  }
  const open = deliveries.filter(({ delivery }) => delivery.status !== 'delivered');
  if (open.length === 0) return [`The shop was told of ${event.type}.`];
  return open.slice(0, 3).map(({ delivery, attempts }) => {
    const { url, status, attemptCount, lastStatus, lastError, nextAttemptAt, endpointDisabled } = delivery;
    const subject = `${shorten(url)} was not told of ${event.type}`;
    const hasFailed = lastStatus !== null || lastError !== null;
    const why = hasFailed ? `: ${describeOutcome(lastStatus, lastError)}` : '';
    if (status === 'dead') return `${subject}${why}. All ${attemptCount} attempts failed, and none follows.`;
    if (endpointDisabled !== null)
      return `${subject}: the endpoint is disabled (${shorten(endpointDisabled.reason, 200)}).`;
    if (isInProgress({ delivery, attempts })) {
      return `${subject} yet${why}. Attempt ${attemptCount} is in progress; without a result the next one follows at ${toIso(nextAttemptAt)}.`;
    }
    return `${subject} yet${why}. The next attempt is due at ${toIso(nextAttemptAt)}.`;
  });
}
