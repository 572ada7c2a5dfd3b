import type { FieldProblem } from '../../domain/errors.ts';
import { noteProblem } from '../../domain/resolution.ts';
import { secretProblem } from '../../operator/input/secret-message.ts';
import { spotSecretInNote } from '../../operator/input/spot-secret.ts';

/**
 * The note that the option `name` gives, or an empty one. Notes are kept for ever, so one that looks like a secret is refused.
 * Problems are added to `problems`, so that a command reports all of them at once.
 */
export function readNote(option: string | undefined, problems: FieldProblem[], name = '--note'): string {
  const note = (option ?? '').trim();
  const kind = spotSecretInNote(note);
  if (kind !== null) {
    const { subject, message } = secretProblem(name, kind);
    const wayOut = (WAYS_OUT[kind] ?? '').replace('--note', name);
    problems.push({ subject, message: `${message} ${wayOut}`.trim() });
    return note;
  }
  const problem = noteProblem(note);
  if (problem !== null) problems.push({ subject: name, message: `${name} ${problem}` });
  return note;
}

/** For what only looks like a secret. */
const WAYS_OUT: Readonly<Record<string, string>> = {
  'a private key':
    'If it is the id of a transaction, write "tx" directly before it, and no word such as "key": --note "tx 3a4f…".',
  'a seed phrase': 'If it is a sentence, write it with full stops.',
};
