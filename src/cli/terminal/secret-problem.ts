import { secretMessage } from '../../operator/command-words.ts';

/** `place` is where the secret stands: an argument or an option. */
export function secretProblem(place: string, kind: string): { subject: string; message: string } {
  return { subject: place, message: `${place}: ${secretMessage(kind)}` };
}
