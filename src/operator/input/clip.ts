import { printableJson } from './printable.ts';
import { spotSecret } from './spot-secret.ts';

/** A given value for a message: quoted and short. A text that looks like a secret is not shown. */
export function clip(text: string): string {
  return spotSecret(text) === null ? quote(text) : `(${text.length} characters, not shown)`;
}

/** A value of the ledger, for a message: quoted and short. */
export function quote(text: string): string {
  return quoteWhole(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** A value in quotes as JSON, in which nothing can rewrite what a terminal shows. */
export function quoteWhole(text: string): string {
  return printableJson(JSON.stringify(text));
}

/** Stored text for a sentence: short enough to read. The data has all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}
