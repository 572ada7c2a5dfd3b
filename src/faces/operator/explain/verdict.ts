import { accountToAddress } from '@quittance/tron/address';
import { formatSigned } from '../../../core/chain/reconcile.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { isLate } from '../../../core/domain/invoice.ts';
import type { UnclaimedAnswer } from '../../../core/domain/lookup/lookup.ts';
import { Message, say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import { SETTLING } from '../../../core/domain/resolution.ts';
import { toIso } from '../../../core/domain/time.ts';
import { lifeStatusOf } from '../../../core/store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/problems.ts';
import type { TransferRecord } from '../subjects/transfer-export.ts';
import type { Step } from './explanation.ts';
import type {
  AddressFacts,
  DescribedDelivery,
  DescribedTransfer,
  InvoiceFacts,
  OrphanedFacts,
  SetAsideFacts,
  Stand,
  TransactionFacts,
} from './facts.ts';
import { EVENTS_SEARCHED, type ExplainedOutgoing, MAX_COUNTED } from './statements.ts';
import { describeAnnulment, describeOutcome, isInProgress, refundedBy, timelineOfRefund } from './timeline.ts';

/** A sentence in a verdict, possibly with next steps. A row whose condition doesn't hold is false, `null` or `undefined`. */
type Row = Text | readonly [says: Text, ...next: Step[]] | false | null | undefined;

export type Verdict = { verdict: Text[]; next: Step[] };

/** Collects the rows whose condition holds. */
function judge(...rows: readonly Row[]): Verdict {
  const held = rows.flatMap((row): (readonly [Text, ...Step[]])[] => {
    if (!row) return [];
    return typeof row === 'string' || row instanceof Message ? [[row]] : [row];
  });
  return { verdict: held.map(([says]) => says), next: held.flatMap(([, ...next]) => next) };
}

/** Returns the first row whose condition holds. The last row must always hold. */
function first<Words>(...rows: readonly (Words | false | null | undefined)[]): Words {
  return rows.find(Boolean) as Words;
}

const stepToInvoice = (id: string): Step => ({
  says: 'to see the invoice',
  hint: { command: 'explain', args: [encodeId('inv', id)] },
});
/** An unmatched transfer needs only one decision, so a resolved one has no next step. */
const stepsToResolve = ({ transfer, resolutions }: DescribedTransfer): Step[] => {
  const hint = { command: 'transfers resolve', args: [encodeId('trf', transfer.id)], input: { resolution: '…' } };
  return resolutions.length > 0 ? [] : [{ says: 'to resolve the transfer', hint }];
};

const isOpen = ({ resolutions }: DescribedTransfer) => resolutions.length === 0;
const usdt = (micro: TransferRecord['amountMicro']) => `${formatAmount(micro)} USDT`;
const nameOf = ({ externalId }: { externalId: string }) => shorten(externalId, 60);
/** A text such as `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z`. */
const nameTransfer = ({ amountMicro, from, blockTime }: TransferRecord) =>
  `${usdt(amountMicro)} from ${from} at ${toIso(blockTime)}`;
/** Includes the id, which is needed to resolve the transfer. */
const nameOpen = ({ transfer }: DescribedTransfer) => `${nameTransfer(transfer)} (${encodeId('trf', transfer.id)})`;
const atLeast = (count: number, isAll: boolean) => (isAll ? String(count) : `At least ${count}`);
/** Counting stops just above the limit, so a count above it only means "more than the limit". */
export const countUpTo = (limit: number, count: number) => (count > limit ? `more than ${limit}` : String(count));

function describeResolved({ transfer, resolutions }: DescribedTransfer): string {
  const last = resolutions.at(-1);
  if (last === undefined) return 'The transfer is not resolved.';
  return `${shorten(last.resolvedBy)} resolved it as ${last.resolution}${timelineOfRefund(transfer)}.`;
}

const TAMPERED =
  'Do not rely on this explanation: an open alarm says that one of its rows was changed, is missing or has no seal. See docs/guides/tampering.md.';

/** Judges the invoice's state, related transfers that didn't pay it, what delays it, and whether the shop was notified. */
export function judgeInvoice(facts: InvoiceFacts): Verdict {
  const { invoice, events, near, setAside, stand } = facts;
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
    !isPaid && stand.trouble !== null && `Note that ${stand.trouble}.`,
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

function judgeDuplicates({ payment, duplicates: { shown, total } }: InvoiceFacts): Row {
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
function judgeNear({ invoice, near, unmatched }: InvoiceFacts): Row[] {
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
function judgeNotification(last: InvoiceFacts['events'][number] | undefined): Row[] {
  if (last === undefined || last.deliveries === null) return [];
  const { type } = last.event;
  if (last.deliveries.length === 0)
    return [`${type} was not sent, because no webhook endpoint was active at that time.`];
  const open = last.deliveries.filter(({ delivery }) => delivery.status !== 'delivered');
  if (open.length === 0) return [`The shop has received ${type}.`];
  return open.slice(0, 3).map((described) => judgeDelivery(type, described));
}

function judgeDelivery(type: string, described: DescribedDelivery): Row {
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

/** The maximum number of sentences in a verdict for each kind of transfer. */
const MAX_JUDGED = 3;

/** Judges what each transfer did. Steps about the invoices come first, then steps for open and refunded transfers. */
export function judgeTransaction(facts: TransactionFacts): Verdict {
  const { transfers, outgoing, sightings, setAside, isTampered } = facts;
  const count = transfers.length + outgoing.length + sightings.length;
  const [came, left] = [transfers.slice(0, MAX_JUDGED), outgoing.slice(0, MAX_JUDGED)];
  const invoices = [
    ...transfers.flatMap(({ transfer }) => transfer.invoice?.id ?? []),
    ...sightings.map(({ invoiceId }) => invoiceId),
  ];
  const { verdict, next } = judge(
    isTampered && TAMPERED,
    ...came.flatMap(judgeTransfer),
    ...sightings.slice(0, MAX_JUDGED).map(judgeSighting),
    ...setAside.slice(0, MAX_JUDGED).map(judgeSetAside),
    ...left.map(judgeOutgoing),
    setAside.length > MAX_JUDGED && `${setAside.length} payments in this transaction are set aside.`,
    count > MAX_JUDGED && `All ${count} transfers are listed below.`,
  );
  return { verdict, next: [...[...new Set(invoices)].slice(0, MAX_JUDGED).map(stepToInvoice), ...next] };
}

function judgeTransfer(described: DescribedTransfer): Row[] {
  const { transfer, causes } = described;
  const { kind, invoice, address, amountMicro, annulment } = transfer;
  const id = encodeId('trf', transfer.id);
  const name = invoice === null ? '' : nameOf(invoice);
  const came = `${usdt(amountMicro)} arrived at ${address}`;
  if (annulment !== null) {
    const recorded = `${usdt(amountMicro)} to ${address} (${id}) were recorded, but ${describeAnnulment(annulment)}.`;
    const left = `${name} stays PAID, although this transfer did not pay it.`;
    return [kind === 'matched' && invoice !== null ? `${recorded} ${left}` : recorded];
  }
  if (kind === 'matched') return [`${came} and paid ${name}.`];
  const why = kind === 'duplicate' ? `${name} was already PAID` : 'no invoice has this amount on this address';
  const [likeliest] = causes;
  return [
    [
      `${came} (${id}), but it pays no invoice, because ${why}. ${describeResolved(described)}`,
      ...stepsToResolve(described),
    ],
    kind === 'unmatched' && likeliest && `Likely (${likeliest.confidence}): ${likeliest.explanation}`,
  ];
}

/** If several exact transfers are on their way, the first one in the chain pays. */
function judgeSighting({ rival, ...sighting }: TransactionFacts['sightings'][number]): Row {
  const { amountMicro, blockNumber } = sighting;
  const stands = `${usdt(amountMicro)}, exactly the payable amount of ${nameOf(sighting)}, was seen in block ${blockNumber}`;
  return rival === null
    ? `${stands}. The invoice becomes PAID when the block is irreversible, usually within two minutes.`
    : `${stands}. Another transfer of exactly this amount arrived first, in block ${rival.blockNumber}, transaction ${rival.txId}. Unless that block is orphaned, this transfer pays no invoice.`;
}

/** Judges a payment that Quittance can't record, or an invoice whose status can't change, until a row is repaired. */
function judgeSetAside({ network, reason, transfer }: SetAsideFacts): Row {
  const what =
    transfer === null
      ? 'Quittance has set this aside'
      : `${usdt(transfer.amount as MicroUsdt)} arrived at ${accountToAddress(transfer.to)} in block ${transfer.blockNumber} (transaction ${transfer.txId}), but Quittance has set the payment aside`;
  return [
    `${what}, because a row fails its check: ${shorten(reason, 300)}. Quittance continues within minutes of the repair.`,
    {
      says: 'to see the alarm set-aside, and then repair the row',
      hint: { command: 'chain status', input: { network } },
    },
  ];
}

function judgeOutgoing(outgoing: ExplainedOutgoing): Row {
  const { amountMicro, address, to, annulment } = outgoing;
  const refunded = refundedBy(outgoing);
  const left = `${usdt(amountMicro)} was sent from ${address} to ${to}`;
  return first<Row>(
    annulment && `${usdt(amountMicro)} from ${address} to ${to} was recorded, but ${describeAnnulment(annulment)}.`,
    refunded !== null && [
      `${left}, as the refund of ${refunded}.`,
      { says: 'to see the refunded transfer', hint: { command: 'transfers show', args: [refunded] } },
    ],
    `${left}.`,
  );
}

/** Judges a transaction whose block was orphaned. */
export function judgeOrphaned(found: readonly OrphanedFacts[]): Verdict {
  return judge(
    ...found.map(({ invoice, transaction: { amount, blockNumber, blockTime } }): Row => {
      const name = nameOf(invoice);
      const now =
        invoice.status === 'PAID'
          ? `Another transfer paid ${name}.`
          : 'If it appears again in another block, it pays the invoice.';
      return [
        `${amount} USDT, exactly the payable amount of ${name}, was seen in block ${blockNumber} (${blockTime}). The block was orphaned, and as far as Quittance knows, this transaction is no longer on the chain. ${now}`,
        stepToInvoice(invoice.id),
      ];
    }),
  );
}

/** Recommends what to do about a transaction that the ledger doesn't know. */
export function judgeUnknown(followed: readonly Stand[], projects: Actor['projects']): Verdict {
  const { verdict } = judge(
    `The ledger does not contain this transaction: in the recorded blocks, it moved no USDT to or from ${nameAddresses(projects)}.`,
    projects?.length === 1 && SEARCHED,
    ...followed.map(({ trouble }) => trouble !== null && `Note that ${trouble}.`),
  );
  return { verdict, next: TO_LOOK_UP.map((says) => ({ says })) };
}

const SEARCHED = say`Without ${{ field: 'projectId' }}, Quittance searches every project that you may see.`;

const TO_LOOK_UP: readonly Text[] = [
  'look the transaction up at tronscan.org (nile.tronscan.org for Nile), because the payer may have sent a link to another network',
  'if the transaction failed, moved no USDT, or went to an address that is not yours, it did not pay you',
  say`if its block is newer than the recorded blocks, wait and try again: see "${{ command: 'chain status' }}"`,
  say`if its block is older, and your project already had the address, read the block again: ${{ command: 'chain rescan', input: { from: '<block>', to: '<block>' } }}`,
  say`the block of the transaction may have been orphaned: Quittance searches only the newest ${EVENTS_SEARCHED} events for orphaned transactions, but "${{ command: 'explain' }}" of the invoice always shows the transaction`,
];

function nameAddresses(projects: Actor['projects']): string {
  const [only, ...others] = projects ?? [];
  if (only === undefined) return 'your addresses';
  return others.length === 0
    ? `the addresses of the project ${encodeId('prj', only)}`
    : `the addresses of the ${others.length + 1} projects that you may see`;
}

type Asked = { network: Network; answer: UnclaimedAnswer; forPayer: string; nodes: string; solidNumber: number | null };

/** Judges what the chain shows about a transaction that the ledger doesn't know: its block isn't recorded yet, or the ledger missed it. */
export function judgeAnswer({ network, answer, forPayer, nodes, solidNumber }: Asked): Verdict {
  const place = 'blockNumber' in answer ? `in block ${answer.blockNumber} (${answer.blockTime})` : 'at this moment';
  if (answer.code !== 'to_your_address') {
    const why = answer.code === 'unavailable' ? ` None of its nodes responded: ${nodes}.` : '';
    return judge(`On ${network}, ${place}, the payment page would say: ${forPayer}${why}`);
  }
  const came = `On ${network}, ${place}, ${answer.amount} USDT arrived at your address ${answer.to}`;
  if (solidNumber === null || answer.blockNumber > solidNumber) {
    const recorded = solidNumber === null ? 'no block is recorded yet' : `the ledger is at block ${solidNumber}`;
    const says = 'wait until the block is recorded, then try again; if the block is delayed, see';
    return judge([`${came}. The block is not recorded yet: ${recorded}.`, { says, hint: { command: 'chain status' } }]);
  }
  const block = String(answer.blockNumber);
  return judge([
    `${came}. The block is recorded, but the ledger does not contain the transfer. Perhaps the address was added later.`,
    { says: 'to read the block again', hint: { command: 'chain rescan', input: { from: block, to: block } } },
  ]);
}

/** Judges one of our addresses: its state, its invoices and its last balance check. */
export function judgeAddress({ address: own, total, since }: AddressFacts): Verdict {
  const { address, projectName, network, policy, retiredAt, balance } = own;
  const state = {
    active: 'It is active.',
    frozen:
      'Tether has frozen it: it can still receive USDT, but cannot send any. It gets no new invoices, but it is still watched.',
    unfrozen: 'Tether froze it and later unfroze it. It gets invoices again when an operator activates it.',
    retired: `It has been retired since ${retiredAt === null ? 'never' : toIso(retiredAt)}: it gets no new invoices, but it is still watched.`,
    blocked: 'It is retired permanently.',
  }[lifeStatusOf(own)];
  const { incoming, outgoing } = since;
  // A balance check applies to one block; later transfers aren't in its figures.
  const moved = [
    ...(incoming === 0
      ? []
      : [`${countUpTo(MAX_COUNTED, incoming)} ${incoming === 1 ? 'transfer' : 'transfers'} arrived`]),
    ...(outgoing === 0 ? [] : [`${countUpTo(MAX_COUNTED, outgoing)} left`]),
  ];
  const after = moved.length === 0 ? '' : ` Since then, ${moved.join(' and ')}.`;
  const when =
    balance && `At the last comparison, at block ${balance.checkedBlock} (${toIso(balance.checkedAt)}), its balance`;
  const [onChain, inLedger] =
    balance === null ? [] : [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  return judge(
    `${address} is an address of ${shorten(projectName)} on ${network} with policy ${policy}. ${state}`,
    `It has ${countUpTo(MAX_COUNTED, total)} invoice${total === 1 ? '' : 's'}.`,
    first<Row>(
      balance === null && 'Its balance has not been compared with the chain yet.',
      onChain === inLedger && `${when} matched the ledger: ${onChain} USDT.${after}`,
      say`${when ?? ''} did NOT match the ledger: ${onChain ?? ''} USDT on the chain, ${inLedger ?? ''} in the ledger.${after} To compare them again, run "${{ command: 'reconcile', input: { address } }}".`,
    ),
  );
}

/** Judges a stranger's address that paid us or that we paid, with counts up to a limit. */
export function judgeStranger(
  address: string,
  projects: Actor['projects'],
  { sent, got, limit }: { sent: number; got: number; limit: number },
): Verdict {
  const isOne = projects?.length === 1;
  const no = `${address} is not one of ${nameAddresses(projects)}.`;
  return judge(isOne ? say`${no} ${SEARCHED}` : no, [
    `It sent ${countUpTo(limit, sent)} ${sent === 1 ? 'transfer' : 'transfers'} to ${isOne ? "the project's" : 'your'} addresses, and received ${countUpTo(limit, got)} from them.`,
    { says: 'to see a transfer', hint: { command: 'explain', args: ['<transaction id>'] } },
  ]);
}
