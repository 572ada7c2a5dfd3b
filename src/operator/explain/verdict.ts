import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import { isLate } from '../../domain/invoice.ts';
import type { UnclaimedAnswer } from '../../domain/lookup/lookup.ts';
import { Message, say, type Text } from '../../domain/message.ts';
import { formatAmount } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import { SETTLING } from '../../domain/resolution.ts';
import { toIso } from '../../domain/time.ts';
import { lifeStatusOf } from '../../store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/clip.ts';
import type { TransferRecord } from '../subjects/transfer-records.ts';
import type { Step } from './explanation.ts';
import type {
  AddressFacts,
  DescribedDelivery,
  DescribedTransfer,
  InvoiceFacts,
  OrphanedFacts,
  Stand,
  TransactionFacts,
} from './facts.ts';
import { EVENTS_SEARCHED, type ExplainedOutgoing, MAX_COUNTED } from './statements.ts';
import { describeAnnulment, describeOutcome, describeRefund, isInProgress, refundedBy } from './timeline.ts';

/** A sentence of a verdict is a row of a table: its condition, its words, and perhaps the steps to take. */
type Row = Text | readonly [says: Text, ...next: Step[]] | false | null | undefined;

export type Verdict = { verdict: Text[]; next: Step[] };

/** Says each row whose condition holds. */
function judge(...rows: readonly Row[]): Verdict {
  const held = rows.flatMap((row): (readonly [Text, ...Step[]])[] => {
    if (!row) return [];
    return typeof row === 'string' || row instanceof Message ? [[row]] : [row];
  });
  return { verdict: held.map(([says]) => says), next: held.flatMap(([, ...next]) => next) };
}

/** The first row whose condition holds; that of the last one always does. */
function first<Words>(...rows: readonly (Words | false | null | undefined)[]): Words {
  return rows.find(Boolean) as Words;
}

const stepToInvoice = (id: string): Step => ({
  says: 'all about the invoice',
  hint: { command: 'explain', args: [encodeId('inv', id)] },
});
/** A transfer that paid nothing is to be decided once. */
const stepsToResolve = ({ transfer, resolutions }: DescribedTransfer): Step[] => {
  const hint = { command: 'transfers resolve', args: [encodeId('trf', transfer.id)], input: { resolution: '…' } };
  return resolutions.length > 0 ? [] : [{ says: 'when you have decided', hint }];
};

const isOpen = ({ resolutions }: DescribedTransfer) => resolutions.length === 0;
const usdt = (micro: TransferRecord['amountMicro']) => `${formatAmount(micro)} USDT`;
const nameOf = ({ externalId }: { externalId: string }) => shorten(externalId, 60);
/** `24.000000 USDT from T… at 2026-09-01T12:00:00.000Z` */
const nameTransfer = ({ amountMicro, from, blockTime }: TransferRecord) =>
  `${usdt(amountMicro)} from ${from} at ${toIso(blockTime)}`;
/** With the id that resolves it. */
const nameOpen = ({ transfer }: DescribedTransfer) => `${nameTransfer(transfer)} (${encodeId('trf', transfer.id)})`;
const atLeast = (count: number, isAll: boolean) => (isAll ? String(count) : `At least ${count}`);
/** A count above the limit means only that there are more. */
export const countUpTo = (limit: number, count: number) => (count > limit ? `more than ${limit}` : String(count));

/** `null`: nobody did. */
function describeResolved({ transfer, resolutions }: DescribedTransfer): string | null {
  const last = resolutions.at(-1);
  return last ? `${shorten(last.resolvedBy)} resolved it as ${last.resolution}${describeRefund(transfer)}` : null;
}

/** The state of an invoice, the transfers that are not its payment, what stands in the way, and whether the shop knows. */
export function judgeInvoice(facts: InvoiceFacts): Verdict {
  const { invoice, events, near, stand } = facts;
  const { status, withdrawnAt } = invoice;
  const isPaid = status === 'PAID';
  // A decision in force that names it closed its page.
  const settling = near.find(({ resolutions, transfer }) => {
    const last = resolutions.at(-1);
    return last?.invoice?.id === invoice.id && SETTLING.includes(last.resolution) && transfer.annulment === null;
  });
  return judge(
    judgeStatus(facts),
    !isPaid &&
      withdrawnAt !== null &&
      `The shop withdrew its page at ${toIso(withdrawnAt)}: it asks for no payment any more, and one that comes pays.`,
    !isPaid &&
      settling &&
      `Its page asks for no payment, because ${nameOpen(settling)} was accepted for it; an exact payment that comes all the same pays.`,
    judgeDuplicates(facts),
    ...judgeNear(facts),
    !isPaid && stand.trouble !== null && `Mind that ${stand.trouble}.`,
    ...judgeNotification(events.at(-1)),
  );
}

function judgeStatus({ invoice, payment, sightings, events, near, unmatched }: InvoiceFacts): string {
  const { expiresAt, payableMicro, address } = invoice;
  const name = nameOf(invoice);
  const wanted = `exactly ${usdt(payableMicro)} at ${address}`;
  const arrived = first(
    // A sighting that led to nothing was orphaned.
    events.some(({ event }) => event.type === 'invoice.confirming') &&
      'the transfer that was seen is no longer on the chain, because its block was orphaned; it may come again in another block',
    (near.length > 0 || unmatched.total > 0) && 'nothing exact arrived',
    'nothing arrived',
  );
  const last = events.at(-1)?.event;
  const since = last === undefined ? '' : ` since ${toIso(last.createdAt)}`;
  const [seen, ...others] = sightings;
  const where = seen === undefined ? '' : ` in block ${seen.blockNumber} of ${toIso(seen.blockTime)}`;
  const pay = others.length === 1 ? 'comes after it and pays' : 'come after it and pay';
  const more = others.length === 0 ? '' : ` ${others.length} more of exactly this amount ${pay} nothing.`;
  const { annulment = null } = payment?.transfer ?? {};
  const when =
    payment !== null && isLate(payment.transfer.blockTime, expiresAt)
      ? `after its deadline of ${toIso(expiresAt)}, which counts all the same`
      : 'in time';
  const paid = payment && `${toIso(payment.transfer.decidedAt)}: ${nameTransfer(payment.transfer)}, ${when}`;
  return {
    PAID: first(
      annulment &&
        `${name} is PAID since ${paid}. But ${describeAnnulment(annulment)}. PAID is never left, and nothing was paid by it.`,
      paid !== null && `${name} is PAID since ${paid}.`,
      `${name} is PAID.`,
    ),
    CONFIRMING: `${name} is CONFIRMING: the exact transfer stands${where}, and is PAID as soon as that block is irreversible, normally within a minute or two.${more}`,
    PENDING: `${name} waits for ${wanted} until ${toIso(expiresAt)}; ${arrived}.`,
    EXPIRED: `${name} is EXPIRED${since} and still payable: it waits for ${wanted}; ${arrived}.`,
  }[invoice.status];
}

function judgeDuplicates({ payment, duplicates: { shown, total } }: InvoiceFacts): Row {
  const open = shown.filter(isOpen);
  const newest = open.at(-1) ?? shown.at(-1);
  if (newest === undefined) return null;
  const resolved = describeResolved(newest);
  const state = resolved === null ? ' and is not resolved' : `; ${resolved}`;
  const example = open.length === 0 ? '' : `, as ${nameOpen(newest)}`;
  return [
    first(
      payment?.transfer.annulment &&
        `Exactly its amount stands on the chain all the same: ${nameOpen(newest)}${state}.`,
      total === 1 && `It was paid twice: ${nameOpen(newest)} pays nothing${state}.`,
      `${atLeast(total, total < MAX_COUNTED)} more transfers of the same amount came and pay nothing; of the newest ${shown.length}, ${open.length} are not resolved${example}.`,
    ),
    ...stepsToResolve(newest),
  ];
}

/** The transfers that may be meant for it, with their certainty: open ones before resolved ones, then the likeliest. */
function judgeNear({ invoice, near, unmatched }: InvoiceFacts): Row[] {
  // The exact transfer came; all else is more than that.
  const hasExact = invoice.status === 'PAID' || invoice.status === 'CONFIRMING';
  const best = near.find(isOpen) ?? near[0];
  if (best === undefined) {
    const { total, isAll, compared } = unmatched;
    const came = total === 1 && isAll ? 'transfer that pays' : 'transfers that pay';
    const and = compared < total ? `, and of the ${compared} that were compared` : ', and';
    return [
      total > 0 &&
        !hasExact &&
        `${atLeast(total, isAll)} ${came} nothing came to its address or of its amounts since${and} none becomes its amount by a usual mistake, or something else explains it far better; that is never certain.`,
    ];
  }
  const name = nameOpen(best);
  const isLinked = best.resolutions.at(-1)?.invoice?.id === invoice.id;
  const isSure = isLinked || best.fit?.cause.confidence === 'high';
  const others = near.length - 1 + Math.max(0, unmatched.fitting - near.filter(({ fit }) => fit !== null).length);
  const resolved = describeResolved(best);
  const state = resolved === null ? ' and is not resolved' : `; ${resolved}`;
  const unsure = resolved === null ? ', not resolved' : state;
  const also = hasExact ? 'In addition, ' : '';
  const cause = best.fit?.cause ?? best.causes[0];
  return [
    [
      first(
        isSure && hasExact && `In addition ${name} came, which pays nothing${state}.`,
        isSure && `What came is ${name}, which pays nothing${state}.`,
        others === 0 && `${also}1 transfer that pays nothing may be meant for it: ${name}${unsure}.`,
        `${also}${others + 1} transfers that pay nothing may be meant for it; the likeliest: ${name}${unsure}.`,
      ),
      ...stepsToResolve(best),
    ],
    cause && `Likely (${cause.confidence}): ${cause.explanation}`,
    isSure && others === 1 && '1 more that pays nothing may be meant for it, but less likely; it stands below.',
    isSure && others > 1 && `${others} more that pay nothing may be meant for it, but less likely; they stand below.`,
  ];
}

/** Whether the shop knows the present status, by the last event. */
function judgeNotification(last: InvoiceFacts['events'][number] | undefined): Row[] {
  if (last === undefined || last.deliveries === null) return [];
  const { type } = last.event;
  if (last.deliveries.length === 0) return [`Nobody was told of ${type}: no webhook endpoint was active then.`];
  const open = last.deliveries.filter(({ delivery }) => delivery.status !== 'delivered');
  if (open.length === 0) return [`The shop was told of ${type}.`];
  return open.slice(0, 3).map((described) => judgeDelivery(type, described));
}

function judgeDelivery(type: string, described: DescribedDelivery): Row {
  const { url, status, attemptCount, lastStatus, lastError, nextAttemptAt, endpointDisabled } = described.delivery;
  const subject = `${shorten(url)} was not told of ${type}`;
  const hasFailed = lastStatus !== null || lastError !== null;
  const why = hasFailed ? `: ${describeOutcome({ status: lastStatus, error: lastError })}` : '';
  return first(
    status === 'dead' && `${subject}${why}. All ${attemptCount} attempts failed, and none follows.`,
    endpointDisabled && `${subject}: the endpoint is disabled (${shorten(endpointDisabled.reason, 200)}).`,
    isInProgress(described) &&
      `${subject} yet${why}. Attempt ${attemptCount} is in progress; without a result the next one follows at ${toIso(nextAttemptAt)}.`,
    `${subject} yet${why}. The next attempt is due at ${toIso(nextAttemptAt)}.`,
  );
}

/** Sentences of a verdict for each kind of transfer. */
const MAX_JUDGED = 3;

/** What each transfer did. First the steps to the invoices, then those to decide and to the refunded. */
export function judgeTransaction({ transfers, outgoing, sightings }: TransactionFacts): Verdict {
  const count = transfers.length + outgoing.length + sightings.length;
  const [came, left] = [transfers.slice(0, MAX_JUDGED), outgoing.slice(0, MAX_JUDGED)];
  const invoices = [
    ...transfers.flatMap(({ transfer }) => transfer.invoice?.id ?? []),
    ...sightings.map(({ invoiceId }) => invoiceId),
  ];
  const { verdict, next } = judge(
    ...came.flatMap(judgeTransfer),
    ...sightings.slice(0, MAX_JUDGED).map(judgeSighting),
    ...left.map(judgeOutgoing),
    count > MAX_JUDGED && `All ${count} transfers shown stand below.`,
  );
  return { verdict, next: [...[...new Set(invoices)].slice(0, MAX_JUDGED).map(stepToInvoice), ...next] };
}

function judgeTransfer(described: DescribedTransfer): Row[] {
  const { transfer, causes } = described;
  const { kind, invoice, address, amountMicro, annulment } = transfer;
  const id = encodeId('trf', transfer.id);
  const name = invoice === null ? '' : nameOf(invoice);
  const came = `${usdt(amountMicro)} came to ${address}`;
  if (annulment !== null) {
    const recorded = `${usdt(amountMicro)} to ${address} (${id}) were recorded, and ${describeAnnulment(annulment)}.`;
    const left = `It had made ${name} PAID, which is never left: that invoice was not paid by this.`;
    return [kind === 'matched' && invoice !== null ? `${recorded} ${left}` : recorded];
  }
  if (kind === 'matched') return [`${came} and paid ${name}.`];
  const why = kind === 'duplicate' ? `${name} was PAID before` : 'no invoice reserves that amount there';
  const state = describeResolved(described) ?? 'it is not resolved';
  const [likeliest] = causes;
  return [
    [`${came} (${id}) and pays nothing, because ${why}; ${state}.`, ...stepsToResolve(described)],
    kind === 'unmatched' && likeliest && `Likely (${likeliest.confidence}): ${likeliest.explanation}`,
  ];
}

/** If several exact transfers are on their way, the first one in the chain pays. */
function judgeSighting({ rival, ...sighting }: TransactionFacts['sightings'][number]): Row {
  const { amountMicro, blockNumber } = sighting;
  const stands = `${usdt(amountMicro)}, exactly what ${nameOf(sighting)} waits for, stands in block ${blockNumber}`;
  return rival === null
    ? `${stands}. It is PAID as soon as that block is irreversible, normally within a minute or two.`
    : `${stands}. Another transfer of exactly this amount comes first, in block ${rival.blockNumber}, transaction ${rival.txId}: unless that block is orphaned, this one pays nothing.`;
}

function judgeOutgoing(outgoing: ExplainedOutgoing): Row {
  const { amountMicro, address, to, annulment } = outgoing;
  const refunded = refundedBy(outgoing);
  const left = `${usdt(amountMicro)} left ${address} for ${to}`;
  return first<Row>(
    annulment && `${usdt(amountMicro)} from ${address} for ${to} were recorded, and ${describeAnnulment(annulment)}.`,
    refunded !== null && [
      `${left}: the refund of ${refunded}.`,
      { says: 'what it sent back', hint: { command: 'transfers show', args: [refunded] } },
    ],
    `${left}.`,
  );
}

/** A transaction that was seen in a block which left the chain. */
export function judgeOrphaned(found: readonly OrphanedFacts[]): Verdict {
  return judge(
    ...found.map(({ invoice, transaction: { amount, blockNumber, blockTime } }): Row => {
      const name = nameOf(invoice);
      const now =
        invoice.status === 'PAID'
          ? `${name} is PAID by another one.`
          : 'It may come again in another block, and pays then.';
      return [
        `${amount} USDT, exactly what ${name} waited for, was seen in block ${blockNumber} of ${blockTime}, but that block was orphaned, and this transaction is no longer on the chain as far as it is known. ${now}`,
        stepToInvoice(invoice.id),
      ];
    }),
  );
}

/** What to do about a transaction that the ledger does not know. */
export function judgeUnknown(followed: readonly Stand[], projects: Actor['projects']): Verdict {
  const { verdict } = judge(
    `The ledger has nothing of this transaction: up to the blocks recorded, no USDT transfer of it came to or left an address of ${nameProjects(projects)}.`,
    projects?.length === 1 && say`Without ${{ field: 'projectId' }} ${SEARCHED}.`,
    ...followed.map(({ trouble }) => trouble !== null && `Mind that ${trouble}.`),
  );
  return { verdict, next: TO_LOOK_UP.map((says) => ({ says })) };
}

const SEARCHED = 'every project that you may see is searched';

const TO_LOOK_UP: readonly Text[] = [
  'look it up at tronscan.org (nile.tronscan.org for Nile); the link of the payer may be of another network',
  'is it there and successful, in USDT, and to one of your addresses? If not, it paid somebody else or nobody',
  say`is its block above the blocks that are recorded here? Then wait, and ask again; see "${{ command: 'chain status' }}"`,
  say`is it below, and to an address that you had then? Then read its block again: ${{ command: 'chain rescan', input: { from: '<block>', to: '<block>' } }}`,
  say`was it seen here before? Then its block was orphaned: such ones are found in the newest ${EVENTS_SEARCHED} events only, but "${{ command: 'explain' }}" of the invoice tells of it for ever`,
];

/** Whose addresses are meant. */
function nameProjects(projects: Actor['projects']): string {
  const [only, ...others] = projects ?? [];
  if (only === undefined) return 'yours';
  return others.length === 0
    ? `the project ${encodeId('prj', only)}`
    : `the ${others.length + 1} projects that you may see`;
}

type Asked = { network: Network; answer: UnclaimedAnswer; forPayer: string; nodes: string; solidNumber: number | null };

/** What the chain shows of a transaction that the ledger does not know: either its block is not recorded yet, or the ledger missed it. */
export function judgeAnswer({ network, answer, forPayer, nodes, solidNumber }: Asked): Verdict {
  const place = 'blockNumber' in answer ? `in block ${answer.blockNumber} of ${answer.blockTime}` : 'asked just now';
  if (answer.code !== 'to_your_address') {
    const why = answer.code === 'unavailable' ? ` No node of it gave an answer: ${nodes}.` : '';
    return judge(`On ${network}, ${place}, for a payer: ${forPayer}${why}`);
  }
  const came = `On ${network}, ${place}, ${answer.amount} USDT came to your address ${answer.to}`;
  if (solidNumber === null || answer.blockNumber > solidNumber) {
    const recorded = solidNumber === null ? 'no block is recorded yet' : `the ledger stands at block ${solidNumber}`;
    const says = 'wait until its block is recorded, and ask again; what keeps it is told by';
    return judge([
      `${came}, in a block that is not recorded yet: ${recorded}.`,
      { says, hint: { command: 'chain status' } },
    ]);
  }
  const block = String(answer.blockNumber);
  return judge([
    `${came}, in a block that is recorded, and the ledger does not have it: perhaps the address was added later.`,
    { says: 'read its block again', hint: { command: 'chain rescan', input: { from: block, to: block } } },
  ]);
}

/** An address of ours: its state, its invoices, and how its books were last. */
export function judgeAddress({ address: own, total, since }: AddressFacts): Verdict {
  const { address, projectName, network, policy, retiredAt, balance } = own;
  const state = {
    active: 'in use',
    frozen: 'frozen by Tether: it still receives and cannot send, takes no new invoices, and is watched for ever',
    unfrozen: 'frozen by Tether once, and not any more: it takes invoices again when somebody activates it',
    retired: `retired since ${retiredAt === null ? 'never' : toIso(retiredAt)}: it takes no new invoices, and is watched for ever`,
    blocked: 'retired for good',
  }[lifeStatusOf(own)];
  const { incoming, outgoing } = since;
  // A comparison is of its block: what moved after it is not in its figures.
  const moved = [
    ...(incoming === 0
      ? []
      : [`${countUpTo(MAX_COUNTED, incoming)} ${incoming === 1 ? 'transfer' : 'transfers'} came`]),
    ...(outgoing === 0 ? [] : [`${countUpTo(MAX_COUNTED, outgoing)} left`]),
  ];
  const after = moved.length === 0 ? '' : ` Since then ${moved.join(' and ')}.`;
  const when =
    balance &&
    `At the last comparison, at block ${balance.checkedBlock} (${toIso(balance.checkedAt)}), its balance was`;
  const [onChain, inLedger] =
    balance === null ? [] : [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  return judge(
    `${address} is an address of ${shorten(projectName)} on ${network}, of policy ${policy}, ${state}.`,
    `It has ${countUpTo(MAX_COUNTED, total)} invoice${total === 1 ? '' : 's'}.`,
    first<Row>(
      balance === null && 'Its balance was not compared with the chain yet.',
      onChain === inLedger && `${when} what the ledger said: ${onChain} USDT.${after}`,
      say`${when ?? ''} NOT what the ledger said: ${onChain ?? ''} USDT on the chain, ${inLedger ?? ''} in the ledger.${after} "${{ command: 'reconcile', input: { address } }}" looks again.`,
    ),
  );
}

/** An address of somebody else, which paid us or was paid by us: so many times, counting up to a limit. */
export function judgeStranger(
  address: string,
  projects: Actor['projects'],
  { sent, got, limit }: { sent: number; got: number; limit: number },
): Verdict {
  const isOne = projects?.length === 1;
  const no = `${address} is no address of ${nameProjects(projects)}`;
  return judge(isOne ? say`${no}; without ${{ field: 'projectId' }} ${SEARCHED}.` : `${no}.`, [
    `It sent ${countUpTo(limit, sent)} transfers to ${isOne ? "the project's" : 'yours'}, and got ${countUpTo(limit, got)} from them.`,
    { says: 'all about one of them', hint: { command: 'explain', args: ['<transaction id>'] } },
  ]);
}
