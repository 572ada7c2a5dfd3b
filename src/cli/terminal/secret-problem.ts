import type { FieldProblem } from '../../domain/errors.ts';
import { secretMessage } from '../../operator/input/secret-message.ts';

/** `place` is where the secret stands: an argument or an option. */
export function secretProblem(place: string, kind: string): FieldProblem {
  return { subject: place, message: `${place}: ${secretMessage(kind, true)}` };
}
