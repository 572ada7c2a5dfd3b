/** What an operator can do about a transfer that paid nothing. None of them changes an invoice. */
export const RESOLUTIONS = ['refunded', 'credited-outside', 'own-deposit', 'ignored'] as const;

export type ResolutionKind = (typeof RESOLUTIONS)[number];

export function isResolution(text: string): text is ResolutionKind {
  return (RESOLUTIONS as readonly string[]).includes(text);
}

/** The bound of the schema, in characters. */
const MAX_NOTE = 2000;

/** What is wrong with a note, or `null`. It is one line, so that it stays one in every table and file. */
export function noteProblem(note: string): string | null {
  const length = [...note].length;
  if (length > MAX_NOTE) return `has ${length} characters: at most ${MAX_NOTE} are kept`;
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(note))
    return 'holds a control character, such as a line break: write it in one line';
  return null;
}
