import { formatHint, optionOf } from '../../domain/format-hint.ts';
import { Message, type Text } from '../../domain/message.ts';

/**
 * The message for a text that looks like a secret of this kind. What is typed as an argument or option stays in the history of the shell;
 * other places are files and streams.
 */
export function secretMessage(kind: string, place = 'argument'): string {
  const where = place.startsWith('argument') ? 'It may now stand in your shell history' : 'It now stands in that input';
  return `this looks like ${kind}. Quittance never needs one; never paste it anywhere. ${where}: delete it there, and if it is real, move the funds or replace it.`;
}

/** A text with the names of the command line. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field: optionOf, step: formatHint, secret: secretMessage }) : text;
}

/** The same for all texts in what is written as JSON. */
export function asWritten(_key: string, value: unknown): unknown {
  return value instanceof Message ? writeText(value) : value;
}
