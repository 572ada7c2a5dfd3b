/** An operator can resolve a transfer that paid nothing in these ways. None of them changes the status of an invoice. */
export const RESOLUTIONS = ['refunded', 'credited-outside', 'own-deposit', 'ignored'] as const;

export type ResolutionKind = (typeof RESOLUTIONS)[number];

/** An invoice that the newest decision about a transfer names with one of these is settled, so its page asks for no payment. */
export const SETTLING: readonly ResolutionKind[] = ['credited-outside'];

export function isResolution(text: string): text is ResolutionKind {
  return (RESOLUTIONS as readonly string[]).includes(text);
}

/** The bound of the schema, in characters. */
const MAX_NOTE = 2000;

/** Says why a note is refused, or `null`. A note is a single line, so that it fits every table and file. */
export function noteProblem(note: string): string | null {
  const length = [...note].length;
  if (length > MAX_NOTE) return `has ${length} characters: use at most ${MAX_NOTE}`;
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(note))
    return 'contains a control character, such as a line break: write it in one line';
  return null;
}
