import { spotSecret } from './spot-secret.ts';

/** A value that was given, for a message: quoted and short. What looks like a secret is not shown. */
export function clip(text: string): string {
  return spotSecret(text) === null ? quote(text) : `(${text.length} characters, not shown)`;
}

/** A value of the ledger, for a message: quoted and short. */
export function quote(text: string): string {
  return quoteWhole(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/**
 * A value in quotes as JSON. All that could rewrite what a terminal shows is escaped: JSON itself does so only below U+0020,
 * which leaves other control characters and marks of direction.
 */
export function quoteWhole(text: string): string {
  return JSON.stringify(text).replace(/\p{C}/gu, (character) => character.split('').map(escapeUnit).join(''));
}

/** Of UTF-16. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
