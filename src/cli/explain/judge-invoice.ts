import { assertNever } from '../../domain/assert-never.ts';
import { isLate } from '../../domain/invoice.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import { describeOutcome } from './delivery-entries.ts';
import type { ToldEvent } from './event-entries.ts';
import { shorten } from './explanation.ts';
import type { InvoiceFacts } from './invoice-facts.ts';
import { nameTransfer, type ToldTransfer } from './transfer-entries.ts';

/** What became of an invoice, what came that is not its payment, whether the shop knows, and what stands in the way. */
export function judgeInvoice(facts: InvoiceFacts): string[] {
  const isPaid = facts.invoice.status === 'PAID';
  return [
    judgeStatus(facts),
    ...judgeDuplicates(facts),
    ...judgeNear(facts),
    ...(isPaid || facts.stand.trouble === null ? [] : [`Mind that ${facts.stand.trouble}.`]),
    ...judgeTelling(facts.events.at(-1)),
  ];
}

function judgeStatus({ invoice, events, exact, sightings, near }: InvoiceFacts): string {
  const { status, expiresAt } = invoice;
  const name = shorten(invoice.externalId, 60);
  const wanted = `exactly ${formatAmount(invoice.payableMicro)} USDT at ${invoice.address.address}`;
  const last = events.at(-1)?.event;
  // A sighting that led to nothing was orphaned.
  const isOrphaned = events.some(({ event }) => event.type === 'invoice.confirming');
  const arrived = isOrphaned
    ? 'the transfer that was seen is no longer on the chain, because its block was orphaned; it may come again in another block'
    : near.length > 0
      ? 'that amount did not arrive'
      : 'nothing arrived';
  switch (status) {
    case 'PAID': {
      const payment = exact.find(({ transfer }) => transfer.kind === 'matched')?.transfer;
      if (payment === undefined) return `${name} is PAID.`;
      const when = isLate(payment.blockTime, expiresAt)
        ? `after its deadline of ${toIso(expiresAt)}, which counts all the same`
        : 'in time';
      return `${name} is PAID since ${toIso(payment.decidedAt)}: ${nameTransfer(payment)}, ${when}.`;
    }
    case 'CONFIRMING': {
      const seen = sightings[0];
      const where = seen === undefined ? '' : ` in block ${seen.blockNumber} of ${toIso(seen.blockTime)}`;
      return `${name} is CONFIRMING: the exact transfer stands${where}, and is PAID as soon as that block is irreversible, normally within a minute or two.`;
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
  if (duplicateCount === 0) return [];
  const duplicates = exact.filter(({ transfer }) => transfer.kind === 'duplicate');
  const [only] = duplicates;
  if (duplicateCount === 1 && only !== undefined) {
    return [`It was paid twice: ${nameTransfer(only.transfer)} pays nothing${describeResolved(only)}.`];
  }
  const open = duplicates.filter(({ resolutions }) => resolutions.length === 0).length;
  return [
    `${duplicateCount} more transfers of the same amount came and pay nothing; of the newest ${duplicates.length}, ${open} are not resolved.`,
  ];
}

/** The transfer that is the likeliest to have been meant for it: not resolved before resolved, then the newest. */
function judgeNear({ near }: InvoiceFacts): string[] {
  const [best] = near.toSorted(
    (left, right) =>
      Number(left.resolutions.length > 0) - Number(right.resolutions.length > 0) ||
      right.transfer.blockTime - left.transfer.blockTime,
  );
  if (best === undefined) return [];
  const [likeliest] = best.causes;
  return [
    `What came is ${nameTransfer(best.transfer)}, which pays nothing${describeResolved(best)}.`,
    ...(likeliest === undefined ? [] : [`Likely (${likeliest.confidence}): ${likeliest.explanation}`]),
    ...(near.length === 1 ? [] : [`${near.length - 1} more that pay nothing and may be meant for it stand below.`]),
  ];
}

function describeResolved({ resolutions }: ToldTransfer): string {
  const last = resolutions.at(-1);
  return last === undefined
    ? ' and is not resolved'
    : `; ${shorten(last.resolvedBy)} resolved it as ${last.resolution}`;
}

/** Whether the shop knows the present status. */
function judgeTelling(last: ToldEvent | undefined): string[] {
  if (last === undefined || last.deliveries === null) return [];
  const { event, deliveries } = last;
  if (deliveries.length === 0) {
    return [`Nobody was told of ${event.type}: no webhook endpoint was active then.`];
  }
  const open = deliveries.filter(({ delivery }) => delivery.status !== 'delivered');
  if (open.length === 0) return [`The shop was told of ${event.type}.`];
  return open.slice(0, 3).map(({ delivery }) => {
    const { url, status, attemptCount, lastStatus, lastError, nextAttemptAt, endpointDisabled } = delivery;
    const subject = `${shorten(url)} was not told of ${event.type}`;
    const hasFailed = lastStatus !== null || lastError !== null;
    const why = hasFailed ? `: ${describeOutcome(lastStatus, lastError)}` : '';
    if (status === 'dead') return `${subject}${why}. All ${attemptCount} attempts failed, and none follows.`;
    if (endpointDisabled !== null)
      return `${subject}: the endpoint is disabled (${shorten(endpointDisabled.reason, 200)}).`;
    return `${subject} yet${why}. The next attempt is due at ${toIso(nextAttemptAt)}.`;
  });
}
