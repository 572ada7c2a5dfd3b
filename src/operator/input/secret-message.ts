import type { FieldProblem } from '../../domain/errors.ts';

/** The message for a text that looks like a secret of this kind. `isTyped`: on a command line, whose history keeps it. */
export function secretMessage(kind: string, isTyped: boolean): string {
  const where = isTyped ? 'It may now stand in your shell history' : 'It now stands in that input';
  return `this looks like ${kind}. Quittance never needs one; never paste it anywhere. ${where}: delete it there, and if it is real, move the funds or replace it.`;
}

/** `place` is where the secret stands: an argument, an option, or a place in an input. */
export function secretProblem(place: string, kind: string, isTyped = true): FieldProblem {
  return { subject: place, message: `${place}: ${secretMessage(kind, isTyped)}` };
}
