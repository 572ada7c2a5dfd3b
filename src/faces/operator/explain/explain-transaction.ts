import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { describeNodes } from '../../../core/chain/nodes/node.ts';
import type { NodePool } from '../../../core/chain/nodes/node-pool.ts';
import { createTransactionReader, type TransactionReaderDeps } from '../../../core/chain/verify/transaction-reader.ts';
import { AppError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import {
  answerUnclaimed,
  type TransactionFacts as ChainFacts,
  type GeneralAnswer,
  type UnclaimedAnswer,
} from '../../../core/domain/lookup/lookup.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { NETWORKS, type Network } from '../../../core/domain/network.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { findPause } from '../../../core/payments/contract-states.ts';
import { diagnoseTransfers } from '../../../core/payments/mismatch/diagnose-transfers.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import { findCursor } from '../../../core/store/chain/cursor.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { findAddresses } from '../../../core/store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { findResolutions, findTransfersOfTransaction } from '../subjects/transfer-export.ts';
import type { Explanation, Step } from './explanation.ts';
import {
  type DescribedEvent,
  type DescribedTransfer,
  describePosition,
  isTampered,
  type LedgerPosition,
  ledgerOf,
  MAX_EVENTS,
  MAX_SHOWN,
  omit,
  readDeliveries,
  readEntry,
  readLedgerPosition,
} from './facts.ts';
import {
  EVENTS_SEARCHED,
  type ExplainedOutgoing,
  type ExplainedSighting,
  findConfirmingOf,
  findEventsOfInvoice,
  findEventsOfTransfers,
  findExplainedInvoice,
  findOutgoingOfTransaction,
  findSetAsideOfTransaction,
  findSightingsOfInvoice,
  findSightingsOfTransaction,
  transactionOf,
} from './statements.ts';
import {
  describeAnnulment,
  describeEvent,
  describeOutgoing,
  describeSighting,
  describeStatuses,
  refundedBy,
  timelineOfTransfer,
} from './timeline.ts';
import {
  describeResolved,
  first,
  judge,
  judgeSetAside,
  nameAddresses,
  nameOf,
  SEARCHED,
  type Sentence,
  stepsToResolve,
  TAMPERED,
  usdt,
  type Verdict,
} from './verdict.ts';

/** Where to search: in these projects, or in all for `null`. */
type Scope = { db: Sql; projects: Actor['projects']; now: UnixMs };
type Transaction = { txId: string; hasEthereumPrefix: boolean };

/** Explains all our transfers in a transaction, on any network. Returns `null` if there are none. */
export async function explainTransaction({ db, projects }: Scope, subject: Transaction): Promise<Explanation | null> {
  const facts = await readTransactionFacts(db, subject.txId, projects);
  if (facts === null) return null;
  return {
    ...judgeTransaction(facts),
    ...describeTransaction(subject),
    timeline: [
      ...facts.transfers.flatMap(timelineOfTransfer),
      ...facts.outgoing.flatMap(describeOutgoing),
      ...facts.sightings.map(describeSighting),
      ...facts.events.flatMap(describeEvent),
    ],
    omissions: facts.omissions,
  };
}

function describeTransaction({ txId, hasEthereumPrefix }: Transaction): Pick<Explanation, 'subject' | 'fields'> {
  const note = 'TRON transaction ids have no 0x prefix, so this may be a transaction on another chain';
  return {
    subject: { form: 'transaction', txId, ...(hasEthereumPrefix ? { note } : {}) },
    fields: [
      ['transaction', txId],
      ['note', hasEthereumPrefix ? note : null],
    ],
  };
}

/** A transaction may pay hundreds of addresses, but only this many are shown. */
const MAX_TRANSFERS = 50;

/** Reads all our transfers in a transaction, on any network. Returns `null` if there are none. */
async function readTransactionFacts(db: Sql, txId: string, projects: Actor['projects']) {
  const found = await findTransfersOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const left = await findOutgoingOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const seen = await findSightingsOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  const aside = await findSetAsideOfTransaction(db, txId, projects, MAX_TRANSFERS + 1);
  if (found.length + left.length + seen.length + aside.length === 0) return null;
  const transfers = found.slice(0, MAX_TRANSFERS);
  const ids = transfers.map(({ id }) => id);
  const causes = await diagnoseTransfers(db, ids);
  const resolutions = await findResolutions(db, ids);
  const { events, deliveries } = await readDeliveries(db, await findEventsOfTransfers(db, ids, 100));
  const sightings = [];
  for (const sighting of seen.slice(0, MAX_TRANSFERS)) sightings.push(await withRival(db, sighting));
  return {
    transfers: transfers.map((transfer): DescribedTransfer => {
      const { id } = transfer;
      return { transfer, causes: causes.get(id) ?? [], fit: null, resolutions: resolutions.get(id) ?? [] };
    }),
    outgoing: left.slice(0, MAX_TRANSFERS),
    sightings,
    setAside: aside.slice(0, MAX_TRANSFERS).map(readEntry),
    isTampered: await isTampered(
      db,
      transfers.map(({ network }) => network),
      [...ids, ...transfers.flatMap(({ invoice }) => invoice?.id ?? [])],
    ),
    events,
    omissions: [
      omit('incoming transfers in this transaction (there may be more)', transfers.length, found.length),
      omit('outgoing transfers in this transaction (there may be more)', MAX_TRANSFERS, left.length),
      omit('sightings in this transaction (there may be more)', sightings.length, seen.length),
      omit('payments in this transaction that are set aside (there may be more)', MAX_TRANSFERS, aside.length),
      { what: 'deliveries of events of this transaction', ...deliveries },
    ],
  };
}

/** `rival` is another sighting of exactly this amount that is earlier on the chain, and therefore pays the invoice. */
async function withRival(db: Sql, sighting: ExplainedSighting) {
  const { projectId, invoiceId: id, txId, logIndex } = sighting;
  const [first] = await findSightingsOfInvoice(db, { projectId, id }, 1);
  const isFirst = first === undefined || (first.txId === txId && first.logIndex === logIndex);
  return { ...sighting, rival: isFirst ? null : first };
}

type Facts = NonNullable<Awaited<ReturnType<typeof readTransactionFacts>>>;

const stepToInvoice = (id: string): Step => ({
  says: 'to see the invoice',
  hint: { command: 'explain', args: [encodeId('inv', id)] },
});

/** The maximum number of sentences in a verdict for each kind of transfer. */
const MAX_JUDGED = 3;

/** Judges what each transfer did. Steps about the invoices come first, then steps for open and refunded transfers. */
function judgeTransaction(facts: Facts): Verdict {
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

function judgeTransfer(described: DescribedTransfer): Sentence[] {
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
function judgeSighting({ rival, ...sighting }: Facts['sightings'][number]): Sentence {
  const { amountMicro, blockNumber } = sighting;
  const seen = `${usdt(amountMicro)}, exactly the payable amount of ${nameOf(sighting)}, was seen in block ${blockNumber}`;
  return rival === null
    ? `${seen}. The invoice becomes PAID when the block is irreversible, usually within two minutes.`
    : `${seen}. Another transfer of exactly this amount arrived first, in block ${rival.blockNumber}, transaction ${rival.txId}. Unless that block is orphaned, this transfer pays no invoice.`;
}

function judgeOutgoing(outgoing: ExplainedOutgoing): Sentence {
  const { amountMicro, address, to, annulment } = outgoing;
  const refunded = refundedBy(outgoing);
  const left = `${usdt(amountMicro)} was sent from ${address} to ${to}`;
  return first<Sentence>(
    annulment && `${usdt(amountMicro)} from ${address} to ${to} was recorded, but ${describeAnnulment(annulment)}.`,
    refunded !== null && [
      `${left}, as the refund of ${refunded}.`,
      { says: 'to see the refunded transfer', hint: { command: 'transfers show', args: [refunded] } },
    ],
    `${left}.`,
  );
}

/** Explains a transaction that isn't in the ledger: its block was orphaned, or the ledger doesn't know it. */
export async function explainUnrecorded(scope: Scope, subject: Transaction): Promise<Explanation> {
  return (await explainOrphaned(scope, subject)) ?? (await explainUnknown(scope, subject));
}

/** Explains a transaction whose block was orphaned. Returns `null` if no recent event mentions it. */
async function explainOrphaned({ db, projects }: Scope, subject: Transaction): Promise<Explanation | null> {
  const found = await readOrphaned(db, subject.txId, projects);
  if (found.length === 0) return null;
  return {
    ...judgeOrphaned(found),
    ...describeTransaction(subject),
    timeline: found
      .flatMap(({ events }) => describeStatuses({ events, sightings: [] }))
      .filter(({ data }) => data['txId'] === subject.txId),
    omissions: [],
  };
}

/** Searches recent events for a transaction that has neither a transfer nor a sighting, because its block was seen and then orphaned. */
async function readOrphaned(db: Sql, txId: string, projects: Actor['projects']) {
  const seen = (await findConfirmingOf(db, txId, projects, MAX_SHOWN)).filter(
    (event) => transactionOf(event)?.txId === txId,
  );
  const found = [];
  for (const [id, event] of new Map(seen.map((one) => [one.invoiceId, one]))) {
    const invoice = await findExplainedInvoice(db, event.projectId, id);
    const transaction = transactionOf(event);
    if (invoice === null || transaction === null) continue;
    const events = (await findEventsOfInvoice(db, invoice, MAX_EVENTS)).toReversed();
    found.push({
      invoice,
      transaction,
      events: events.map((one): DescribedEvent => ({ event: one, deliveries: null })),
    });
  }
  return found;
}

/** Judges a transaction whose block was orphaned. */
function judgeOrphaned(found: Awaited<ReturnType<typeof readOrphaned>>): Verdict {
  return judge(
    ...found.map(({ invoice, transaction: { amount, blockNumber, blockTime } }): Sentence => {
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

/** Explains that a transaction isn't in the ledger, and how far the ledger has followed each chain. */
async function explainUnknown({ db, projects, now }: Scope, subject: Transaction): Promise<Explanation> {
  const positions: LedgerPosition[] = [];
  for (const network of NETWORKS) positions.push(await readLedgerPosition(db, network, now));
  const followed = positions.filter(({ cursor }) => cursor !== null);
  const { subject: described, fields } = describeTransaction(subject);
  const ledgers =
    followed.length === 0 ? ['the service has not read blocks of any network yet'] : followed.map(describePosition);
  return {
    ...judgeUnknown(followed, projects),
    subject: { ...described, ledger: followed.map(ledgerOf) },
    fields: [...fields, ...ledgers.map((ledger) => ['ledger', ledger] as const)],
    ...{ timeline: [], omissions: [], isUnknown: true },
  };
}

/** Recommends what to do about a transaction that the ledger doesn't know. */
function judgeUnknown(followed: readonly LedgerPosition[], projects: Actor['projects']): Verdict {
  const { verdict } = judge(
    `The ledger does not contain this transaction: in the recorded blocks, it moved no USDT to or from ${nameAddresses(projects)}.`,
    projects?.length === 1 && SEARCHED,
    ...followed.map(({ trouble }) => trouble !== null && `Note that ${trouble}.`),
  );
  return { verdict, next: TO_LOOK_UP.map((says) => ({ says })) };
}

const TO_LOOK_UP: readonly Text[] = [
  'look the transaction up at tronscan.org (nile.tronscan.org for Nile), because the payer may have sent a link to another network',
  'if the transaction failed, moved no USDT, or went to an address that is not yours, it did not pay you',
  say`if its block is newer than the recorded blocks, wait and try again: see "${{ command: 'chain status' }}"`,
  say`if its block is older, and your project already had the address, read the block again: ${{ command: 'chain rescan', input: { from: '<block>', to: '<block>' } }}`,
  say`the block of the transaction may have been orphaned: Quittance searches only the newest ${EVENTS_SEARCHED} events for orphaned transactions, but "${{ command: 'explain' }}" of the invoice always shows the transaction`,
];

/** One network's nodes. */
type Nodes = Omit<TransactionReaderDeps, 'log' | 'spend' | 'pool'> & { pool: NodePool };

export type AskDeps = {
  /** The networks whose nodes can be asked. */
  networks: readonly Network[];
  /** Runs `work` with a network's nodes. Throws `SANDBOX_NOT_RUNNING`. */
  withNodes<Output>(network: Network, work: (nodes: Nodes) => Promise<Output>): Promise<Output>;
  log: Logger;
  /** Describes an answer with the wording of the payment page. */
  describeForPayer(answer: GeneralAnswer): string;
};

/**
 * Adds the chain's facts about a transaction that isn't in the ledger. Uses the payment page's wording, except for texts that depend on an
 * invoice. Asks every network that is configured here. Says so if no network is configured or no node responds.
 */
export async function askChain(
  deps: AskDeps | undefined,
  txId: string,
  projects: Actor['projects'],
  unknown: Explanation,
): Promise<Explanation> {
  const shown: ({ network: Network; answer: UnclaimedAnswer } & Verdict)[] = [];
  if (deps !== undefined) {
    for (const network of deps.networks) {
      const ask = (nodes: Nodes) => askNetwork(deps, nodes, txId, projects);
      const found = await deps.withNodes(network, ask).catch(ifNoSandbox);
      if (found !== null) shown.push(found);
    }
  }
  const none =
    "No node is configured for this command, so Quittance did not query the chain. Run it with the service's settings.";
  const isFound = shown.some(({ answer }) => answer.code !== 'not_found' && answer.code !== 'unavailable');
  return {
    ...unknown,
    verdict: [...unknown.verdict, ...(shown.length === 0 ? [none] : shown.flatMap(({ verdict }) => verdict))],
    subject: {
      ...unknown.subject,
      chain: shown.map(({ network, answer, verdict }) => ({ network, answer, says: verdict[0] })),
    },
    next: isFound ? shown.flatMap(({ next }) => next) : unknown.next,
  };
}

function ifNoSandbox(error: unknown): null {
  if (error instanceof AppError && error.code === 'SANDBOX_NOT_RUNNING') return null;
  throw error;
}

async function askNetwork({ log, describeForPayer }: AskDeps, nodes: Nodes, txId: string, projects: Actor['projects']) {
  const { db, network, pool } = nodes;
  const cursor = await findCursor(db, network);
  const read = createTransactionReader({ ...nodes, log, spend: () => true });
  const solidNumber = cursor?.solid.number ?? null;
  const facts = await read({ txId, askedFor: 'explain', client: 'operator', solidNumber, head: cursor?.head ?? null });
  const ours = await findAddresses(db, network, accountsIn(facts));
  const known = ours.filter((each) => projects === null || projects.includes(each.projectId));
  const addresses = new Set(known.map(({ address }) => address));
  const isPaused = (await findPause(db, network))?.pauseState != null;
  const answer = answerUnclaimed(facts, (account) => addresses.has(accountToAddress(account)), isPaused);
  const forPayer = answer.code === 'to_your_address' ? '' : describeForPayer(answer);
  return { network, answer, ...judgeAnswer({ network, answer, forPayer, solidNumber, nodes: describeNodes(pool) }) };
}

function accountsIn(facts: ChainFacts): AccountHex[] {
  if (facts.kind !== 'done') return [];
  const { usdt, otherTokens, trx } = facts;
  return [...new Set([...usdt, ...otherTokens, ...(trx === null ? [] : [trx])].map(({ to }) => to))];
}

type Asked = { network: Network; answer: UnclaimedAnswer; forPayer: string; nodes: string; solidNumber: number | null };

/** Judges what the chain shows about a transaction that the ledger doesn't know: its block isn't recorded yet, or the ledger missed it. */
function judgeAnswer({ network, answer, forPayer, nodes, solidNumber }: Asked): Verdict {
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
