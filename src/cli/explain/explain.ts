import { encodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sql } from '../../store/database.ts';
import { type LocatedInvoice, locateExternalId, locateInvoice } from '../../store/explain-invoice.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { selectProject } from '../select-project.ts';
import { printable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { askChain } from './ask-chain.ts';
import type { Transaction } from './describe-transaction.ts';
import { explainAddress } from './explain-address.ts';
import { explainInvoice } from './explain-invoice.ts';
import { explainOrphaned } from './explain-orphaned.ts';
import { explainTransaction } from './explain-transaction.ts';
import { explainUnknownTransaction } from './explain-unknown.ts';
import { type Explanation, present } from './explanation.ts';
import { readSubject, type Subject } from './read-subject.ts';

/** The most projects that an error message lists. */
const MAX_LISTED = 10;

/**
 * Tells all that the ledger knows of an invoice, a transaction or an address, at one moment: what is paid while it is read is
 * either told as paid throughout or not at all. A text that names nothing in the form that it has may be an external id.
 * `NOT_FOUND` for what nothing is known of; for a transaction that is an answer, with what the chain shows of it and exit code 3.
 */
export async function explain(terminal: Terminal, text: string, options: { project?: string }): Promise<Result> {
  return withDatabase(terminal, async (database) => {
    const told = await database.db.snapshot((tx) => explainIn(tx, text, options));
    const { explanation, unknown, projectId } = told;
    // After the snapshot, for no node is asked within a transaction.
    return present(
      unknown === null ? explanation : await askChain(terminal, database, unknown, projectId, explanation),
    );
  });
}

/** `unknown`: a transaction that the ledger has nothing of, so that only the chain can tell of it. */
type Told = { explanation: Explanation; unknown: Transaction | null; projectId: string | null };

async function explainIn(db: Sql, text: string, options: { project?: string }): Promise<Told> {
  const projectId = options.project === undefined ? null : (await selectProject(db, options.project)).id;
  const subject = readSubject(text);
  const explanation = (await explainForm(db, subject, projectId)) ?? (await explainExternalId(db, text, projectId));
  if (explanation !== null) return { explanation, unknown: null, projectId };
  if (subject.form === 'transaction') {
    const orphaned = await explainOrphaned(db, subject, projectId);
    if (orphaned !== null) return { explanation: orphaned, unknown: null, projectId };
    return { explanation: await explainUnknownTransaction(db, subject, projectId), unknown: subject, projectId };
  }
  throw notFound(subject, options);
}

/** `null` if nothing is known of it in that form. */
async function explainForm(db: Sql, subject: Subject, projectId: string | null): Promise<Explanation | null> {
  switch (subject.form) {
    case 'invoice': {
      const [found] = await locateInvoice(db, subject.id, projectId);
      return found === undefined ? null : explainInvoice(db, found, now());
    }
    case 'transaction':
      return explainTransaction(db, subject, projectId);
    case 'address':
      return explainAddress(db, subject, projectId);
    case 'external-id':
      return null;
  }
}

async function explainExternalId(db: Sql, text: string, projectId: string | null): Promise<Explanation | null> {
  // PostgreSQL has no text with this character, so no external id has it.
  if (text.includes('\u0000')) return null;
  const [found, ...others] = await locateExternalId(db, text, projectId);
  if (found === undefined) return null;
  if (others.length > 0) throw ambiguous(text, [found, ...others]);
  return explainInvoice(db, found, now());
}

function now() {
  return unixMs(systemClock.now());
}

function ambiguous(text: string, found: readonly LocatedInvoice[]): CliError {
  const problems = found.slice(0, MAX_LISTED).map(({ id, projectId, projectName, network }) => {
    const project = encodeId('prj', projectId);
    const message = `--project ${project}  (${printable(projectName)}, ${network}: ${encodeId('inv', id)})`;
    return { subject: project, message };
  });
  const message = `${found.length} projects have an invoice with the external id ${clip(text)}: say which one`;
  return new CliError('INVALID_ARGUMENT', message, { problems });
}

function notFound(subject: Subject, options: { project?: string }): CliError {
  const where = options.project === undefined ? 'no project knows' : `the project ${options.project} does not know`;
  const hint = subject.form === 'external-id' && subject.hint !== null ? ` (${subject.hint})` : '';
  return new CliError(
    'NOT_FOUND',
    `${where} ${clip(subject.text)}${hint}. Ask for an invoice id (inv_…), the externalId of an invoice exactly as it was sent, a transaction id (64 hex characters, or its Tronscan link), or an address (T…)`,
  );
}
