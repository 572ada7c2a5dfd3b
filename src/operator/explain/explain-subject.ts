import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { printable } from '../input/printable.ts';
import { selectProject } from '../select-project.ts';
import { type AskDeps, askChain } from './ask-chain.ts';
import { explainAddress } from './explain-address.ts';
import { explainInvoice } from './explain-invoice.ts';
import { explainOrphaned } from './explain-orphaned.ts';
import { explainTransaction } from './explain-transaction.ts';
import { explainUnknownTransaction } from './explain-unknown.ts';
import { arrange, type Explanation } from './explanation.ts';
import { locateCheckout, locateEvent, locateExternalId, locateInvoice } from './invoice-queries.ts';
import { readSubject, type Subject } from './read-subject.ts';
import { type Found, searchLedger } from './search.ts';

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
