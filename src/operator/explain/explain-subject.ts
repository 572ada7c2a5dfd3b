import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { readOptions } from '../../domain/invoice-options.ts';
import { say, type Text } from '../../domain/message.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { NETWORKS } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { listOperatorActions } from '../../store/access/audit-log.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip, shorten } from '../input/clip.ts';
import { printable } from '../input/printable.ts';
import { selectProject } from '../select-project.ts';
import { type AskDeps, askChain } from './ask-chain.ts';
import { describeAction } from './describe-action.ts';
import { describeTransaction, stepToInvoice, type Transaction } from './describe-transaction.ts';
import { describeEvent } from './event-entries.ts';
import { EVENTS_SEARCHED, findConfirmingOf, findEventsOfInvoice, transactionOf } from './event-queries.ts';
import { explainAddress } from './explain-address.ts';
import { explainTransaction } from './explain-transaction.ts';
import { arrange, type Explanation, nameProjects, SEARCHED } from './explanation.ts';
import { describeCreation, describeStatuses } from './invoice-entries.ts';
import { type InvoiceFacts, readInvoiceFacts } from './invoice-facts.ts';
import {
  findExplainedInvoice,
  type LocatedInvoice,
  locateCheckout,
  locateEvent,
  locateExternalId,
  locateInvoice,
} from './invoice-queries.ts';
import { judgeInvoice, openTransfers } from './judge-invoice.ts';
import { readSubject, type Subject } from './read-subject.ts';
import { type Found, searchLedger } from './search.ts';
import { describeStand, ledgerOf, readStand } from './stand.ts';
import { describeTransfer, hintResolve } from './transfer-entries.ts';

/** The most things that an error message lists. */
const MAX_LISTED = 10;

/** `ask`: how the chain is asked of a transaction that the ledger does not know. Absent: it is not asked. */
type Deps = { db: Database; now(): UnixMs; ask?: AskDeps };
type Asked = { text: string; projectId: string | undefined };

/**
 * Tells all that the ledger knows of an invoice, a transaction or an address, at one moment: what is paid while it is read is
 * either told as paid throughout or not at all. Errors: `NOT_FOUND` for what nothing is known of; for a transaction that is an answer, with
 * what the chain shows of it. `INVALID_ARGUMENT` with all that the text may stand for.
 */
export async function explainSubject(deps: Deps, actor: Actor, asked: Asked): Promise<Explanation> {
  const answer = await findSubject(deps, actor, asked);
  if ('verdict' in answer) return answer;
  throw severalFit(asked.text, answer);
}

/** Where is looked, and what is told of the invoice that a text leads to. */
type Scope = { db: Sql; projects: Actor['projects']; now: UnixMs; tell: typeof explainInvoice };

/**
 * The same, or all that the text may stand for, in one project or in all that the actor may see. A text that names nothing in the form
 * that it has may be an external id, and else is searched for. Errors: `NOT_FOUND`.
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
  // After the snapshot, because no node is asked within a transaction.
  const isAsked = answer.isUnknown === true && subject.form === 'transaction';
  return arrange(isAsked ? await askChain(deps.ask, subject, projects, answer) : answer);
}

async function findSubjectIn(scope: Scope, subject: Subject, asked: Asked): Promise<Explanation | Found> {
  const { db, projects, now } = scope;
  const found = (await explainForm(scope, subject)) ?? (await explainExternalId(scope, asked.text));
  if (found !== null) return found;
  if (subject.form === 'transaction') {
    return (
      (await explainOrphaned(db, subject, projects)) ?? (await explainUnknownTransaction(db, subject, projects, now))
    );
  }
  const answer = await explainSearched(scope, subject);
  if (answer === null) throw notFound(subject, asked);
  return answer;
}

/** `null` if nothing is known of it in that form. */
async function explainForm(scope: Scope, subject: Subject): Promise<Explanation | null> {
  const { db, projects, now, tell } = scope;
  switch (subject.form) {
    case 'invoice': {
      const [found] = await locateInvoice(db, subject.id, projects);
      return found === undefined ? null : tell(db, found, now);
    }
    case 'checkout': {
      const [found] = await locateCheckout(db, subject.token, projects);
      return found === undefined ? null : tell(db, found, now);
    }
    case 'event': {
      const [event] = await locateEvent(db, subject.id, projects);
      if (event === undefined) return null;
      if (event.invoice !== null) return tell(db, event.invoice, now);
      return event.txId === null ? null : explainForm(scope, readSubject(event.txId));
    }
    case 'transaction':
      return explainTransaction(db, subject, projects);
    case 'address':
      return explainAddress(db, subject, projects);
    case 'external-id':
      return null;
  }
}

async function explainExternalId(
  { db, projects, now, tell }: Scope,
  text: string,
): Promise<Explanation | Found | null> {
  // PostgreSQL has no text with this character, so no external id has it.
  if (text.includes('\u0000')) return null;
  const [found, ...others] = await locateExternalId(db, text, projects);
  if (found === undefined) return null;
  return others.length > 0 ? searchLedger(db, projects, text) : tell(db, found, now);
}

/** The one thing that a text leads to that is the exact name of nothing, or all that it may stand for. */
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
    ...invoices.map((each) => ({
      subject: encodeId('inv', each.id),
      message: `${encodeId('inv', each.id)}: ${clip(each.externalId)} of ${printable(each.projectName)}, ${formatAmount(each.payableMicro)} USDT, ${each.status}, ${toIso(each.createdAt)}`,
    })),
    ...transfers.map((each) => ({
      subject: encodeId('trf', each.id),
      message: `${each.txId}: ${formatAmount(each.amountMicro)} USDT to ${printable(each.projectName)}, ${each.kind}, ${toIso(each.blockTime)}`,
    })),
    ...addresses.map(({ address, project }) => ({
      subject: address,
      message:
        project === null
          ? `${address}: it paid you, or was paid by you`
          : say`${address}: ${printable(project.name)}, ${project.network}, ${{ field: 'projectId' }} ${encodeId('prj', project.id)}`,
    })),
  ].slice(0, MAX_LISTED);
  return new AppError('INVALID_ARGUMENT', `${clip(text)} may stand for several things: ask for one of them`, {
    problems,
  });
}

function notFound(subject: Subject, { projectId }: Asked): AppError {
  const where = projectId === undefined ? 'no project knows' : `the project ${projectId} does not know`;
  const hint = subject.form === 'external-id' && subject.hint !== null ? say` (${subject.hint})` : '';
  return new AppError(
    'NOT_FOUND',
    say`${where} ${clip(subject.text)}${hint}. Ask for an invoice id (inv_…), an externalId or how it begins, an amount, a transaction id or how it begins, an event (evt_…), a checkout link, or an address (T…)`,
  );
}

/** Says what to do about a transaction that the ledger does not know, and up to which block the ledger knows each chain. */
async function explainUnknownTransaction(
  db: Sql,
  subject: Transaction,
  projects: Actor['projects'],
  now: UnixMs,
): Promise<Explanation> {
  const stands = [];
  for (const network of NETWORKS) stands.push(await readStand(db, network, now));
  const followed = stands.filter(({ cursor }) => cursor !== null);
  const troubles = followed.flatMap(({ trouble }) => (trouble === null ? [] : [`Mind that ${trouble}.`]));
  const { subject: described, fields } = describeTransaction(subject);
  return {
    verdict: [
      `The ledger has nothing of this transaction: up to the blocks recorded, no USDT transfer of it came to or left an address of ${nameProjects(projects)}.`,
      ...(projects?.length === 1 ? [say`Without ${{ field: 'projectId' }} ${SEARCHED}.`] : []),
      ...troubles,
    ],
    subject: { ...described, ledger: followed.map(ledgerOf) },
    fields: [
      ...fields,
      ...followed.map((stand) => ['ledger', describeStand(stand)] as const),
      ...(followed.length === 0 ? [['ledger', 'no network was examined yet'] as const] : []),
    ],
    timeline: [],
    omissions: [],
    next: STEPS.map((says) => ({ says })),
    isUnknown: true,
  };
}

const STEPS: readonly Text[] = [
  'look it up at tronscan.org (nile.tronscan.org for Nile); the link of the payer may be of another network',
  'is it there and successful, in USDT, and to one of your addresses? If not, it paid somebody else or nobody',
  say`is its block above the blocks that are recorded here? Then wait, and ask again; see "${{ command: 'chain status' }}"`,
  say`is it below, and to an address that you had then? Then read its block again: ${{ command: 'chain rescan', input: { from: '<block>', to: '<block>' } }}`,
  say`was it seen here before? Then its block was orphaned: such ones are found in the newest ${EVENTS_SEARCHED} events only, but "${{ command: 'explain' }}" of the invoice tells of it for ever`,
];

/** A transaction pays few invoices, and each may be sighted in several blocks. */
const MAX_SIGHTINGS = 20;
const MAX_EVENTS = 60;

/**
 * A transaction that was seen in a block which left the chain, as the events of its invoices tell; `null` if no event of late does.
 * Only for one that the ledger has neither as a transfer nor as a sighting.
 */
async function explainOrphaned(
  db: Sql,
  subject: Transaction,
  projects: Actor['projects'],
): Promise<Explanation | null> {
  const { txId } = subject;
  const found = await findConfirmingOf(db, txId, projects, MAX_SIGHTINGS);
  const seen = found.filter((event) => transactionOf(event)?.txId === txId);
  const byInvoice = new Map(seen.map((one) => [one.invoiceId, one]));
  if (byInvoice.size === 0) return null;
  const described = [];
  for (const event of byInvoice.values()) {
    const invoice = { projectId: event.projectId, id: event.invoiceId };
    const events = (await findEventsOfInvoice(db, invoice, MAX_EVENTS)).toReversed();
    const whole = await findExplainedInvoice(db, invoice.projectId, invoice.id);
    const entries = describeStatuses({
      events: events.map((one) => ({ event: one, deliveries: null })),
      sightings: [],
    });
    described.push({
      invoice: whole,
      transaction: transactionOf(event),
      entries: entries.filter(({ data }) => data['txId'] === txId),
    });
  }
  return {
    verdict: described.map(({ invoice, transaction }) => {
      const name = shorten(invoice?.externalId ?? '', 60);
      const isPaid = invoice?.status === 'PAID';
      return `${transaction?.amount} USDT, exactly what ${name} waited for, was seen in block ${transaction?.blockNumber} of ${transaction?.blockTime}, but that block was orphaned, and this transaction is no longer on the chain as far as it is known. ${isPaid ? `${name} is PAID by another one.` : 'It may come again in another block, and pays then.'}`;
    }),
    ...describeTransaction(subject),
    timeline: described.flatMap(({ entries }) => entries),
    omissions: [],
    next: described.flatMap(({ invoice }) => (invoice === null ? [] : [stepToInvoice(invoice.id)])),
  };
}

const MAX_ACTIONS = 20;

/** Everything about one invoice. `now` decides whether the ledger lags behind. */
export async function explainInvoice(db: Sql, located: LocatedInvoice, now: UnixMs): Promise<Explanation> {
  const invoice = await findExplainedInvoice(db, located.projectId, located.id);
  if (invoice === null) throw new Error(`invoice ${located.id} is gone, though invoices are never deleted`);
  const facts = await readInvoiceFacts(db, invoice, now);
  const made = await listOperatorActions(db, encodeId('inv', invoice.id));
  const actions = [...made, ...(await listOperatorActions(db, invoice.address))]
    .filter(({ projectId, actedAt }) => projectId === invoice.projectId && actedAt >= invoice.createdAt)
    .slice(-MAX_ACTIONS);
  return {
    verdict: judgeInvoice(facts),
    ...describeInvoice(facts),
    timeline: [
      ...describeCreation(invoice),
      ...actions.map(describeAction),
      ...describeStatuses(facts),
      ...[...facts.exact, ...facts.near].flatMap(describeTransfer),
      ...[...facts.events, ...facts.transferEvents].flatMap(describeEvent),
    ],
    omissions: facts.omissions,
    next: openTransfers(facts).map(hintResolve),
  };
}

function describeInvoice({ invoice, stand }: InvoiceFacts): Pick<Explanation, 'subject' | 'fields'> {
  const { address, policy, retiredAt, requestedMicro, payableMicro, status } = invoice;
  const [invoiceId, projectId] = [encodeId('inv', invoice.id), encodeId('prj', invoice.projectId)];
  const [requestedAmount, payableAmount] = [formatAmount(requestedMicro), formatAmount(payableMicro)];
  const tail = formatAmount(microUsdt(payableMicro - requestedMicro));
  const sum =
    payableMicro === requestedMicro ? 'what was asked for' : `${requestedAmount} asked for, and a tail of ${tail}`;
  const { description, returnUrl, metadata } = readOptions(invoice.options);
  const retired = retiredAt === null ? '' : `; retired since ${toIso(retiredAt)}, and watched for ever`;
  return {
    subject: {
      form: 'invoice',
      invoiceId,
      externalId: invoice.externalId,
      projectId,
      network: invoice.network,
      status,
      requestedAmount,
      payableAmount,
      address,
      policy,
      createdAt: toIso(invoice.createdAt),
      expiresAt: toIso(invoice.expiresAt),
      ledger: ledgerOf(stand),
    },
    fields: [
      ['invoice', invoiceId],
      ['external id', invoice.externalId],
      ['project', `${projectId} (${invoice.projectName}, ${invoice.network})`],
      ['status', status],
      ['to pay', `${payableAmount} USDT (${sum})`],
      ['to', `${address} (policy ${policy}${retired})`],
      ['until', `${toIso(invoice.expiresAt)}; a later payment counts all the same`],
      ...(description === undefined ? [] : [['for', description] as const]),
      ...(returnUrl === undefined ? [] : [['leads back to', returnUrl] as const]),
      ...Object.entries(metadata ?? {}).map(([name, value]) => [`metadata ${name}`, value] as const),
      ['ledger', describeStand(stand)],
    ],
  };
}
