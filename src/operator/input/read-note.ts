import { noteProblem } from '../../domain/resolution.ts';
import { FieldError, refuseSecret } from './field-error.ts';
import { spotSecretInNote } from './spot-secret.ts';

/** A note as it is kept: one line, and nothing that looks like a secret. Errors: `INVALID_ARGUMENT`. */
export function readNote(field: string, text: string | undefined): string {
  const note = (text ?? '').trim();
  refuseSecret(field, spotSecretInNote(note));
  const problem = noteProblem(note);
  if (problem !== null) throw new FieldError(field, problem);
  return note;
}
