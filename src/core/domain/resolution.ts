/** How an operator can resolve an unmatched or duplicate transfer. No resolution changes the status of an invoice. */
export const RESOLUTIONS = ['refunded', 'fulfilled-manually', 'own-deposit', 'kept'] as const;

export type ResolutionKind = (typeof RESOLUTIONS)[number];

/** Previous names of resolutions. They are still accepted as input, and appear in older rows and events. */
export const FORMER_RESOLUTIONS: Readonly<Record<string, ResolutionKind>> = {
  'credited-outside': 'fulfilled-manually',
  ignored: 'kept',
};

/** If the newest decision about a transfer names an invoice with one of these, the invoice is settled, so its page asks for no payment. */
export const SETTLING: readonly ResolutionKind[] = ['fulfilled-manually'];

/** The resolution with this current or previous name; `null` if there's none. */
export function readResolution(text: string): ResolutionKind | null {
  return (
    RESOLUTIONS.find((kind) => kind === text) ??
    (Object.hasOwn(FORMER_RESOLUTIONS, text) ? (FORMER_RESOLUTIONS[text] ?? null) : null)
  );
}

/** The schema's limit, in characters. */
const MAX_NOTE = 2000;

/** Why a note is refused, or `null`. A note is a single line, so that it fits every table and file. */
export function noteProblem(note: string): string | null {
  const length = [...note].length;
  if (length > MAX_NOTE) return `has ${length} characters: use at most ${MAX_NOTE}`;
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(note))
    return 'contains a control character, such as a line break: write it in one line';
  return null;
}
