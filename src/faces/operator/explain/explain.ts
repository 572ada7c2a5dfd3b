import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { describeNodes, type NodePool } from '../../../core/chain/nodes/node-pool.ts';
import { createTransactionReader, type TransactionReaderDeps } from '../../../core/chain/verify/transaction-reader.ts';
import { AppError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { convertedPriceOf, readOptions } from '../../../core/domain/invoice-options.ts';
import {
  answerUnclaimed,
  type GeneralAnswer,
  type TransactionFacts,
  type UnclaimedAnswer,
} from '../../../core/domain/lookup/lookup.ts';
import { say } from '../../../core/domain/message.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { NETWORKS, type Network } from '../../../core/domain/network.ts';
import { describePrice } from '../../../core/domain/price.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { findPause } from '../../../core/payments/contract-states.ts';
import type { Logger } from '../../../core/runtime/log.ts';
import { Type } from '../../../core/runtime/type.ts';
import { findCursor } from '../../../core/store/chain/cursor.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findAddresses, lifeStatusOf } from '../../../core/store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { clip, printable } from '../input/problems.ts';
import { operation } from '../operation.ts';
import { argument, projectId } from '../option.ts';
import { selectProject } from '../select.ts';
import { findTransfersFrom } from '../subjects/transfer-export.ts';
import { arrange, type Explanation, ExplanationView, printExplanation, toView } from './explanation.ts';
import {
  type InvoiceFacts,
  omit,
  readAddressFacts,
  readInvoiceFacts,
  readOrphaned,
  readStand,
  readTransactionFacts,
  type Stand,
} from './facts.ts';
import { type Found, readSubject, type Subject, searchLedger } from './search.ts';
import {
  type ExplainedAddress,
  findExplainedAddresses,
  findExplainedInvoice,
  findOutgoingTo,
  type LocatedInvoice,
  locateCheckout,
  locateEvent,
  locateExternalId,
  locateInvoice,
  MAX_COUNTED,
} from './statements.ts';
import * as entries from './timeline.ts';
import * as verdicts from './verdict.ts';
import { judgeAnswer, type Verdict } from './verdict.ts';

export const explainSubjectOperation = operation({
  action: 'explainSubject',
  summary: 'Everything known about an invoice, a transaction or an address, in chronological order',
  route: 'GET /explain',
  command: 'explain',
  does: 'show the history of an invoice, a transaction or an address',
  output: ExplanationView,
  input: Type.Object({
    text: argument(
      '<subject>',
      'inv_…, your externalId, a transaction id (or its Tronscan link), or an address T…',
      'inv_…, an externalId, a transaction id or its link, or an address T…',
    ),
    projectId: projectId('only entries for this project (default: all projects)'),
  }),
  read: ({ text, projectId }) => ({ text, projectId }),
  run: async (deps, actor, asked) =>
    explainSubject({ ...deps, ask: { ...deps, ...(await deps.nodes()) } }, actor, asked),
  view: toView,
  print: printExplanation,
});

export const operations = [explainSubjectOperation];

/** `ask` asks the chain about transactions that aren't in the ledger. Without it, the chain isn't asked. */
type Deps = { db: Database; now(): UnixMs; ask?: AskDeps };
type Asked = { text: string; projectId: string | undefined };

/**
 * Explains an invoice, a transaction or an address with everything that the ledger knows. All facts come from a single snapshot, so a
 * payment that is recorded in the meantime appears either in all of them or in none. Unknown transactions are explained too, with the facts
 * that the chain shows about them. Throws `NOT_FOUND`, or `INVALID_ARGUMENT` with every possible meaning of an ambiguous text.
 */
export async function explainSubject(deps: Deps, actor: Actor, asked: Asked): Promise<Explanation> {
  const answer = await findSubject(deps, actor, asked);
  if ('verdict' in answer) return answer;
  throw severalFit(asked.text, answer);
}

/** Where to search, and the function that explains an invoice that was found. */
type Scope = { db: Sql; projects: Actor['projects']; now: UnixMs; tell: typeof explainInvoice };

/**
 * Like `explainSubject`, but if a text is ambiguous, returns its possible meanings instead of throwing. Searches one project, or all
 * projects that the actor may see. If the form that the text seems to have leads to nothing, tries the text as an external id and then
 * searches for it. Throws `NOT_FOUND`.
 */
export async function findSubject(
  deps: Deps,
  actor: Actor,
  asked: Asked,
  tell: Scope['tell'] = explainInvoice,
): Promise<Explanation | Found> {
  const subject = readSubject(asked.text);
  const { answer, projects } = await deps.db.snapshot(async (db) => {
    const isAny = asked.projectId === undefined;
    const projects = isAny ? actor.projects : [(await selectProject(db, actor, asked.projectId)).id];
    return { answer: await findSubjectIn({ db, projects, now: deps.now(), tell }, subject, asked), projects };
  });
  if (!('verdict' in answer)) return answer;
  // Runs after the snapshot has ended, because no node may be asked inside a transaction.
  const isAsked = answer.isUnknown === true && subject.form === 'transaction';
  return arrange(isAsked ? await askChain(deps.ask, subject.txId, projects, answer) : answer);
}

async function findSubjectIn(scope: Scope, subject: Subject, asked: Asked): Promise<Explanation | Found> {
  const found = (await explainForm(scope, subject)) ?? (await explainExternalId(scope, asked.text));
  if (found !== null) return found;
  if (subject.form === 'transaction') {
    return (await explainOrphaned(scope, subject)) ?? (await explainUnknown(scope, subject));
  }
  const answer = await explainSearched(scope, subject);
  if (answer === null) throw notFound(subject, asked);
  return answer;
}

/** Returns `null` if nothing with this form is known. */
async function explainForm(scope: Scope, subject: Subject): Promise<Explanation | null> {
  const { db, projects, now, tell } = scope;
  switch (subject.form) {
    case 'invoice':
    case 'checkout': {
      const [found] = await (subject.form === 'invoice'
        ? locateInvoice(db, subject.id, projects)
        : locateCheckout(db, subject.token, projects));
      return found === undefined ? null : tell(db, found, now);
    }
    case 'event': {
      const [event] = await locateEvent(db, subject.id, projects);
      if (event === undefined) return null;
      if (event.invoice !== null) return tell(db, event.invoice, now);
      return event.txId === null ? null : explainForm(scope, readSubject(event.txId));
    }
    case 'transaction':
      return explainTransaction(scope, subject);
    case 'address': {
      // An address that is used on several networks is ambiguous, so it's searched for.
      const [address, ...others] = await findExplainedAddresses(db, subject.account, projects);
      if (address === undefined) return explainStranger(scope, subject);
      return others.length > 0 ? null : explainAddress(db, address);
    }
    case 'external-id':
      return null;
  }
}

async function explainExternalId(
  { db, projects, now, tell }: Scope,
  text: string,
): Promise<Explanation | Found | null> {
  // PostgreSQL can't store this character in a text, so no external id can contain it.
  if (text.includes('\u0000')) return null;
  const [found, ...others] = await locateExternalId(db, text, projects);
  if (found === undefined) return null;
  return others.length > 0 ? searchLedger(db, projects, text) : tell(db, found, now);
}

/** Explains the only match for a text that isn't an exact name, or returns all matches. */
async function explainSearched(scope: Scope, subject: Subject): Promise<Explanation | Found | null> {
  const text = subject.form === 'address' ? subject.address : subject.text;
  const found = await searchLedger(scope.db, scope.projects, text);
  const [name, ...others] = [
    ...found.invoices.map(({ id }) => encodeId('inv', id)),
    ...new Set(found.transfers.map(({ txId }) => txId)),
    ...found.addresses.map(({ address }) => address),
  ];
  if (name === undefined) return null;
  return others.length > 0 ? found : explainForm(scope, readSubject(name));
}

function severalFit(text: string, { invoices, transfers, addresses }: Found): AppError {
  const problems = [
    ...invoices.map((each) => {
      const subject = encodeId('inv', each.id);
      const of = `${clip(each.externalId)} of ${printable(each.projectName)}`;
      const message = `${subject}: ${of}, ${formatAmount(each.payableMicro)} USDT, ${each.status}, ${toIso(each.createdAt)}`;
      return { subject, message };
    }),
    ...transfers.map((each) => ({
      subject: encodeId('trf', each.id),
      message: `${each.txId}: ${formatAmount(each.amountMicro)} USDT to ${printable(each.projectName)}, ${each.kind}, ${toIso(each.blockTime)}`,
    })),
    ...addresses.map(({ address, project }) => ({
      subject: address,
      message:
        project === null
          ? `${address}: this address sent you money or received money from you`
          : say`${address}: ${printable(project.name)}, ${project.network}, ${{ field: 'projectId' }} ${encodeId('prj', project.id)}`,
    })),
  ].slice(0, 10);
  return new AppError('INVALID_ARGUMENT', `${clip(text)} matches several records: search for one of these`, {
    problems,
  });
}

function notFound(subject: Subject, { projectId }: Asked): AppError {
  const where = projectId === undefined ? 'nothing matches' : `nothing in the project ${projectId} matches`;
  const hint = subject.form === 'external-id' && subject.hint !== null ? say` (${subject.hint})` : '';
  return new AppError(
    'NOT_FOUND',
    say`${where} ${clip(subject.text)}${hint}. Search for an invoice id (inv_…), an externalId or its beginning, an amount, a transaction id or its beginning, an event (evt_…), a checkout link, or an address (T…)`,
  );
}

/** Explains one invoice. `now` is used to decide whether the ledger is lagging behind. */
export async function explainInvoice(db: Sql, located: LocatedInvoice, now: UnixMs): Promise<Explanation> {
  const invoice = await findExplainedInvoice(db, located.projectId, located.id);
  if (invoice === null) throw new Error(`invoice ${located.id} disappeared, although invoices are never deleted`);
  const facts = await readInvoiceFacts(db, invoice, now);
  const { payment, duplicates, near } = facts;
  return {
    ...verdicts.judgeInvoice(facts),
    ...describeInvoice(facts),
    timeline: [
      ...entries.describeCreation(invoice),
      ...facts.actions.map(entries.describeAction),
      ...entries.describeStatuses(facts),
      ...[...(payment === null ? [] : [payment]), ...duplicates.shown, ...near].flatMap(entries.timelineOfTransfer),
      ...[...facts.events, ...facts.transferEvents].flatMap(entries.describeEvent),
    ],
    omissions: facts.omissions,
  };
}

function describeInvoice({ invoice, stand }: InvoiceFacts): Pick<Explanation, 'subject' | 'fields'> {
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
      ...{ address, policy, createdAt, expiresAt, ledger: ledgerOf(stand) },
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
      ['ledger', describeStand(stand)],
    ],
  };
}

/** Returns text such as `recorded up to block 1030 of …, examined up to block 1048 of …`. */
function describeStand({ network, cursor }: Stand): string {
  if (cursor === null) return `the service has not read a block of ${network} yet`;
  const { solid, head } = cursor;
  return `${network}: recorded up to block ${solid.number} (${toIso(solid.time)}), examined up to block ${head.number} (${toIso(head.time)})`;
}

/** The numbers are `null` if the network has never been examined. */
function ledgerOf({ network, cursor }: Stand) {
  return { network, recordedBlock: cursor?.solid.number ?? null, examinedBlock: cursor?.head.number ?? null };
}

type Transaction = Extract<Subject, { form: 'transaction' }>;

/** Explains all our transfers in a transaction, on any network. Returns `null` if there are none. */
async function explainTransaction({ db, projects }: Scope, subject: Transaction): Promise<Explanation | null> {
  const facts = await readTransactionFacts(db, subject.txId, projects);
  if (facts === null) return null;
  return {
    ...verdicts.judgeTransaction(facts),
    ...describeTransaction(subject),
    timeline: [
      ...facts.transfers.flatMap(entries.timelineOfTransfer),
      ...facts.outgoing.flatMap(entries.describeOutgoing),
      ...facts.sightings.map(entries.describeSighting),
      ...facts.events.flatMap(entries.describeEvent),
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

/** Explains a transaction whose block was orphaned. Returns `null` if no recent event mentions it. */
async function explainOrphaned({ db, projects }: Scope, subject: Transaction): Promise<Explanation | null> {
  const found = await readOrphaned(db, subject.txId, projects);
  if (found.length === 0) return null;
  return {
    ...verdicts.judgeOrphaned(found),
    ...describeTransaction(subject),
    timeline: found
      .flatMap(({ events }) => entries.describeStatuses({ events, sightings: [] }))
      .filter(({ data }) => data['txId'] === subject.txId),
    omissions: [],
  };
}

/** Explains that a transaction isn't in the ledger, and how far the ledger has followed each chain. */
async function explainUnknown({ db, projects, now }: Scope, subject: Transaction): Promise<Explanation> {
  const stands: Stand[] = [];
  for (const network of NETWORKS) stands.push(await readStand(db, network, now));
  const followed = stands.filter(({ cursor }) => cursor !== null);
  const { subject: described, fields } = describeTransaction(subject);
  const ledgers =
    followed.length === 0 ? ['the service has not read blocks of any network yet'] : followed.map(describeStand);
  return {
    ...verdicts.judgeUnknown(followed, projects),
    subject: { ...described, ledger: followed.map(ledgerOf) },
    fields: [...fields, ...ledgers.map((ledger) => ['ledger', ledger] as const)],
    ...{ timeline: [], omissions: [], isUnknown: true },
  };
}

/** Explains an address that belongs to a project. */
async function explainAddress(db: Sql, address: ExplainedAddress): Promise<Explanation> {
  const facts = await readAddressFacts(db, address);
  const { invoices, total, moved, actions } = facts;
  const { derived, policy, position, network } = address;
  const isAddingDescribed = actions.some(({ action }) => action === 'address.added' || action === 'address.derived');
  const projectId = encodeId('prj', address.projectId);
  const retiredAt = address.retiredAt === null ? null : toIso(address.retiredAt);
  const status = lifeStatusOf(address);
  const areAllInvoicesCounted = total <= MAX_COUNTED;
  const counted = Object.entries(invoices).map(([name, count]) => `${count} ${name}`);
  return {
    ...verdicts.judgeAddress(facts),
    subject: {
      form: 'address',
      address: address.address,
      projectId,
      network,
      policy,
      status,
      retiredAt,
      position,
      derived,
      ...{ invoices, areAllInvoicesCounted },
      transfers: { ...moved, areAllCounted: Math.max(moved.incoming, moved.outgoing) <= MAX_COUNTED },
    },
    fields: [
      ['address', address.address],
      ['project', `${projectId} (${address.projectName}, ${network})`],
      ['policy', policy],
      ['state', retiredAt === null ? status : `retired since ${retiredAt}`],
      [
        'derived',
        derived &&
          `#${derived.index + 1} (index ${derived.index}) of the account key ${derived.xpub.slice(0, 12)}…${derived.xpub.slice(-6)}`,
      ],
      ['invoices', `${counted.join(', ')}${areAllInvoicesCounted ? '' : `, of the ${total} counted`}`],
      [
        'transfers',
        `${verdicts.countUpTo(MAX_COUNTED, moved.incoming)} in, ${verdicts.countUpTo(MAX_COUNTED, moved.outgoing)} out`,
      ],
    ],
    timeline: [
      ...(isAddingDescribed ? [] : [entries.describeAdding(address)]),
      ...actions.map(entries.describeAction),
      ...facts.incoming.map(entries.describeIncoming),
      ...facts.outgoing.flatMap(entries.describeOutgoing),
      ...entries.describeBalance(address),
    ],
    omissions: facts.omissions,
  };
}

/** How many transfers to show for a stranger's address, newest first. */
const MAX_TRANSFERS = 20;

/** Explains an address that has paid us or that we have paid. Returns `null` if neither is the case. */
async function explainStranger(
  { db, projects }: Scope,
  { address }: Extract<Subject, { form: 'address' }>,
): Promise<Explanation | null> {
  const incoming = await findTransfersFrom(db, address, projects, MAX_TRANSFERS + 1);
  const outgoing = await findOutgoingTo(db, address, projects, MAX_TRANSFERS + 1);
  const [sent, got] = [incoming.length, outgoing.length];
  if (sent + got === 0) return null;
  return {
    ...verdicts.judgeStranger(address, projects, { sent, got, limit: MAX_TRANSFERS }),
    subject: { form: 'address', address, projectId: null },
    fields: [['address', address]],
    timeline: [
      ...incoming.slice(0, MAX_TRANSFERS).toReversed().map(entries.describeIncoming),
      ...outgoing.slice(0, MAX_TRANSFERS).flatMap(entries.describeOutgoing),
    ],
    omissions: [
      omit('transfers from this address (there may be more; the newest are shown)', MAX_TRANSFERS, sent),
      omit('transfers to this address (there may be more; the newest are shown)', MAX_TRANSFERS, got),
    ],
  };
}

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
async function askChain(
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

function accountsIn(facts: TransactionFacts): AccountHex[] {
  if (facts.kind !== 'done') return [];
  const { usdt, otherTokens, trx } = facts;
  return [...new Set([...usdt, ...otherTokens, ...(trx === null ? [] : [trx])].map(({ to }) => to))];
}
