/** The message for a text that looks like a secret of this kind. `isTyped`: on a command line, whose history keeps it. */
export function secretMessage(kind: string, isTyped: boolean): string {
  const where = isTyped ? 'It may now stand in your shell history' : 'It now stands in that input';
  return `this looks like ${kind}. Quittance never needs one; never paste it anywhere. ${where}: delete it there, and if it is real, move the funds or replace it.`;
}
