import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { printable } from '../input/printable.ts';
import { selectProject } from '../projects/select-project.ts';
import { type AskDeps, askChain } from './ask-chain.ts';
import { explainAddress } from './explain-address.ts';
import { explainInvoice } from './explain-invoice.ts';
import { explainOrphaned } from './explain-orphaned.ts';
import { explainTransaction } from './explain-transaction.ts';
import { explainUnknownTransaction } from './explain-unknown.ts';
import { arrange, type Explanation } from './explanation.ts';
import {
  type LocatedInvoice,
  locateCheckout,
  locateEvent,
  locateExternalId,
  locateInvoice,
} from './invoice-queries.ts';
import { readSubject, type Subject } from './read-subject.ts';
import { type Found, searchLedger } from './search.ts';

/** The most projects that an error message lists. */
const MAX_LISTED = 10;

type Deps = AskDeps & { db: Database; now(): UnixMs };
type Asked = { text: string; projectId: string | undefined };

/**
 * Tells all that the ledger knows of an invoice, a transaction or an address, at one moment: what is paid while it is read is
 * either told as paid throughout or not at all. A text that names nothing in the form that it has may be an external id, and else is
 * searched for.
 * `NOT_FOUND` for what nothing is known of; for a transaction that is an answer, with what the chain shows of it.
 */
export async function explainSubject(deps: Deps, actor: Actor, asked: Asked): Promise<Explanation> {
  const subject = readSubject(asked.text);
  const { explanation, projectId } = await deps.db.snapshot((tx) => explainIn(tx, actor, subject, asked, deps.now()));
  // After the snapshot, for no node is asked within a transaction.
  const isAsked = explanation.isUnknown === true && subject.form === 'transaction';
  return arrange(isAsked ? await askChain(deps, subject, projectId, explanation) : explanation);
}

async function explainIn(db: Sql, actor: Actor, subject: Subject, asked: Asked, now: UnixMs) {
  const isAny = asked.projectId === undefined && actor.projects === null;
  const projectId = isAny ? null : (await selectProject(db, actor, asked.projectId)).id;
  const found =
    (await explainForm(db, subject, projectId, now)) ?? (await explainExternalId(db, asked.text, projectId, now));
  if (found !== null) return { explanation: found, projectId };
  if (subject.form !== 'transaction') {
    const explanation = await explainSearched(db, projectId === null ? null : [projectId], subject, now);
    if (explanation === null) throw notFound(subject, asked);
    return { explanation, projectId };
  }
  const orphaned = await explainOrphaned(db, subject, projectId);
  const explanation = orphaned ?? (await explainUnknownTransaction(db, subject, projectId, now));
  return { explanation, projectId };
}

/** `null` if nothing is known of it in that form. */
async function explainForm(
  db: Sql,
  subject: Subject,
  projectId: string | null,
  now: UnixMs,
): Promise<Explanation | null> {
  switch (subject.form) {
    case 'invoice': {
      const [found] = await locateInvoice(db, subject.id, projectId);
      return found === undefined ? null : explainInvoice(db, found, now);
    }
    case 'checkout': {
      const [found] = await locateCheckout(db, subject.token, projectId);
      return found === undefined ? null : explainInvoice(db, found, now);
    }
    case 'event': {
      const [event] = await locateEvent(db, subject.id, projectId);
      if (event === undefined) return null;
      if (event.invoice !== null) return explainInvoice(db, event.invoice, now);
      return event.txId === null ? null : explainTransaction(db, transactionOf(subject.text, event.txId), projectId);
    }
    case 'transaction':
      return explainTransaction(db, subject, projectId);
    case 'address':
      return explainAddress(db, subject, projectId);
    case 'external-id':
      return null;
  }
}

async function explainExternalId(
  db: Sql,
  text: string,
  projectId: string | null,
  now: UnixMs,
): Promise<Explanation | null> {
  // PostgreSQL has no text with this character, so no external id has it.
  if (text.includes('\u0000')) return null;
  const [found, ...others] = await locateExternalId(db, text, projectId);
  if (found === undefined) return null;
  if (others.length > 0) throw ambiguous(text, [found, ...others]);
  return explainInvoice(db, found, now);
}

const transactionOf = (text: string, txId: string) =>
  ({ text, form: 'transaction', txId, hasEthereumPrefix: false }) as const;

/** What a text leads to that is the exact name of nothing. Errors: `INVALID_ARGUMENT` with all that it may stand for. */
async function explainSearched(db: Sql, projects: string[] | null, { text }: Subject, now: UnixMs) {
  const { invoices, transfers } = await searchLedger(db, projects, text);
  const txIds = [...new Set(transfers.map(({ txId }) => txId))];
  const [invoice, txId] = [invoices[0], txIds[0]];
  if (invoices.length + txIds.length > 1) throw severalFit(text, { invoices, transfers });
  if (invoice !== undefined) {
    const [located] = await locateInvoice(db, invoice.id, invoice.projectId);
    return located === undefined ? null : explainInvoice(db, located, now);
  }
  return txId === undefined ? null : explainTransaction(db, transactionOf(text, txId), transfers[0]?.projectId ?? null);
}

function severalFit(text: string, { invoices, transfers }: Found): AppError {
  const problems = [
    ...invoices.map((each) => ({
      subject: encodeId('inv', each.id),
      message: `${encodeId('inv', each.id)}: ${clip(each.externalId)} of ${printable(each.projectName)}, ${formatAmount(each.payableMicro)} USDT, ${each.status}, ${toIso(each.createdAt)}`,
    })),
    ...transfers.map((each) => ({
      subject: encodeId('trf', each.id),
      message: `${each.txId}: ${formatAmount(each.amountMicro)} USDT to ${printable(each.projectName)}, ${each.kind}, ${toIso(each.blockTime)}`,
    })),
  ].slice(0, MAX_LISTED);
  return new AppError('INVALID_ARGUMENT', `${clip(text)} may stand for several things: ask for one of them`, {
    problems,
  });
}

function ambiguous(text: string, found: readonly LocatedInvoice[]): AppError {
  const problems = found.slice(0, MAX_LISTED).map(({ id, projectId, projectName, network }) => {
    const project = encodeId('prj', projectId);
    const message = say`${{ field: 'projectId' }} ${project}  (${printable(projectName)}, ${network}: ${encodeId('inv', id)})`;
    return { subject: project, message };
  });
  const message = `${found.length} projects have an invoice with the external id ${clip(text)}: say which one`;
  return new AppError('INVALID_ARGUMENT', message, { problems });
}

function notFound(subject: Subject, { projectId }: Asked): AppError {
  const where = projectId === undefined ? 'no project knows' : `the project ${projectId} does not know`;
  const hint = subject.form === 'external-id' && subject.hint !== null ? say` (${subject.hint})` : '';
  return new AppError(
    'NOT_FOUND',
    say`${where} ${clip(subject.text)}${hint}. Ask for an invoice id (inv_…), an externalId or how it begins, an amount, a transaction id or how it begins, an event (evt_…), a checkout link, or an address (T…)`,
  );
}
