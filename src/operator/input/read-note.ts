import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { noteProblem } from '../../domain/resolution.ts';
import { FieldError, fieldProblem } from './field-error.ts';
import { spotSecretInNote } from './spot-secret.ts';

/**
 * The note that a field gives, or an empty one. Notes are kept for ever, so one that looks like a secret is refused. Problems are added
 * to `problems`, so that a caller reports all of them at once.
 */
export function readNote(text: string | undefined, problems: FieldProblem[], field = 'note'): string {
  const note = (text ?? '').trim();
  const kind = spotSecretInNote(note);
  if (kind !== null) {
    const { subject, message } = fieldProblem(field, say`: ${{ secret: kind }}`);
    problems.push({ subject, message: say`${message}${wayOut(kind, field)}` });
    return note;
  }
  const problem = noteProblem(note);
  if (problem !== null) problems.push(fieldProblem(field, problem));
  return note;
}

/** For what only looks like a secret. */
function wayOut(kind: string, field: string) {
  if (kind === 'a seed phrase') return ' If it is a sentence, write it with punctuation.';
  if (kind !== 'a private key') return '';
  return say` If it is a transaction id, write "tx" directly before it, and no word such as "key": ${{ field }} "tx 3a4f…".`;
}

/** The same for a note alone. Errors: `INVALID_ARGUMENT`. */
export function readOneNote(text: string | undefined, field = 'note'): string {
  const problems: FieldProblem[] = [];
  const note = readNote(text, problems, field);
  const [problem] = problems;
  if (problem !== undefined) throw new AppError('INVALID_ARGUMENT', problem.message);
  return note;
}

/** The reason that a decision is recorded with, for ever: one line. Errors: `INVALID_ARGUMENT`. */
export function readReason(text: string | undefined): string {
  const reason = readOneNote(text, 'reason');
  if (reason !== '') return reason;
  throw new FieldError('reason', 'is missing: give a reason, which is recorded permanently');
}
