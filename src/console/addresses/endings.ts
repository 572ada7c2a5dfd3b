import { FieldError } from '../../operator/input/field-error.ts';
import { ASKED_LENGTH } from '../../operator/subjects/address-derivation.ts';
import { html } from '../../web/html.ts';
import type { FormField } from '../forms/form.ts';

/** What a person types from the wallet, because a list that was pasted may be another one than was copied. */
export function endingField(name: string, label: string, hint: string): FormField {
  const more = html` dir="ltr" maxlength="34" autocapitalize="off" spellcheck="false" required`;
  return { kind: 'line', name, label, hint, more };
}

export const ENDING_FIELD = endingField(
  'ending',
  'The last six characters of the first one',
  'Type them from your wallet, not from this page.',
);

/** Refuses what is not the end of an address, or all of it. Errors: `INVALID_ARGUMENT`. */
export function readEnding(field: string, typed: string | undefined, address: string | undefined): void {
  const text = typed?.trim();
  if (text !== undefined && (text === address || text === address?.slice(-ASKED_LENGTH))) return;
  // What was typed may be anything; it is not repeated.
  throw new FieldError(
    field,
    text === undefined
      ? `takes the last ${ASKED_LENGTH} characters, as your wallet shows them`
      : `is not the end of that address, so nothing was done: compare the addresses with your wallet, in which upper and lower case differ`,
  );
}
