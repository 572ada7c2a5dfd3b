import type { Problem } from './cli-error.ts';

/** `place` is where the secret stands: an argument, an option, or a place in an input. */
export function secretProblem(place: string, kind: string): Problem {
  const isTyped = place.startsWith('argument') || place.startsWith('--');
  const where = isTyped ? 'It may now stand in your shell history' : 'It now stands in that input';
  return {
    subject: place,
    message:
      `${place}: this looks like ${kind}. Quittance never needs one; never paste it anywhere. ` +
      `${where}: delete it there, and if it is real, move the funds or replace it.`,
  };
}
