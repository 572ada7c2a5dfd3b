/** Control characters and lone surrogates. Line breaks and tabs are allowed, because alarms may have several lines. */
const UNPRINTABLE = /(?![\n\t])[\p{Cc}\p{Cs}]/gu;

/**
 * Replaces the characters of a text from outside that PostgreSQL can't store or a terminal would obey. A `text` column refuses a NUL, and
 * `jsonb` also refuses a lone surrogate. For example, a node's compressed error page contains NULs, and they must never block an alarm.
 */
export function printableText(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd');
}
