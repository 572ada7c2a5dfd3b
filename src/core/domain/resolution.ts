/** The ways an operator can resolve an unmatched or duplicate transfer. None of them changes an invoice's status. */
export const RESOLUTIONS = ['refunded', 'fulfilled-manually', 'own-deposit', 'kept'] as const;

export type ResolutionKind = (typeof RESOLUTIONS)[number];

/** Former names of resolutions. Quittance still accepts them as input, and they occur in older rows and events. */
export const FORMER_RESOLUTIONS: Readonly<Record<string, ResolutionKind>> = {
  'credited-outside': 'fulfilled-manually',
  ignored: 'kept',
};

/**
 * If the newest decision about a transfer refers to an invoice and is one of these, the invoice is settled, so its page no longer asks for
 * a payment.
 */
export const SETTLING: readonly ResolutionKind[] = ['fulfilled-manually'];

/** Returns the resolution with this current or former name, or `null` if there's none. */
export function readResolution(text: string): ResolutionKind | null {
  return (
    RESOLUTIONS.find((kind) => kind === text) ??
    (Object.hasOwn(FORMER_RESOLUTIONS, text) ? (FORMER_RESOLUTIONS[text] ?? null) : null)
  );
}

/** The database schema's limit, in characters. */
const MAX_NOTE = 2000;

/** Returns why a note is refused, or `null`. A note is a single line, so that it fits every table and file. */
export function noteProblem(note: string): string | null {
  const length = [...note].length;
  if (length > MAX_NOTE) return `has ${length} characters: use at most ${MAX_NOTE}`;
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(note))
    return 'contains a control character, such as a line break: write it on one line';
  return null;
}
