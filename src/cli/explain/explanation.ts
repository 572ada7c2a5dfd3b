import { toIso } from '../../domain/time.ts';
import { orderTimeline, type TimelineEntry } from '../../domain/timeline.ts';
import type { ExitCode } from '../cli-error.ts';
import { formatFields, printable, type Result } from '../terminal.ts';

/** What is not shown because there is too much of it: `total` of `what`, of which `shown` are. */
export type Omission = { what: string; shown: number; total: number };

/** The answer to one question: the verdict first, then what it is about, then every fact and decision by time. */
export type Explanation = {
  /** Plain sentences, the most important one first. */
  verdict: readonly string[];
  subject: Readonly<Record<string, unknown>>;
  fields: readonly (readonly [name: string, value: string | null])[];
  timeline: readonly TimelineEntry[];
  omissions: readonly Omission[];
  /** What to do now: lines, perhaps none. */
  next: readonly string[];
  exitCode?: ExitCode;
};

/** The explanation as a command prints it. Stored text cannot change what the terminal shows. */
export function present({ subject, fields, timeline, omissions, next, exitCode, verdict }: Explanation): Result {
  const entries = orderTimeline(timeline);
  const left = omissions.filter(({ shown, total }) => total > shown);
  const parts = [
    verdict.map(printable).join('\n'),
    formatFields(fields),
    entries.map(formatEntry).join('\n'),
    left.map(({ what, shown, total }) => `not shown: ${total - shown} more of ${total} ${what}`).join('\n'),
  ];
  return {
    data: {
      subject,
      verdict: printable(verdict.join(' ')),
      timeline: entries.map(({ at, kind, text, data }) => ({ at: toIso(at), kind, text: printable(text), ...data })),
      ...(left.length === 0 ? {} : { notShown: left }),
      ...(next.length === 0 ? {} : { next: next.map(printable) }),
    },
    text: parts.filter((part) => part !== '').join('\n\n'),
    ...(next.length === 0 ? {} : { next: next.map(printable).join('\n') }),
    ...(exitCode === undefined ? {} : { exitCode }),
  };
}

/** As wide as the longest kind. */
const KIND_WIDTH = 11;
const INDENT = ' '.repeat('2026-09-01T12:00:00.000Z'.length + 2 + KIND_WIDTH + 2);

function formatEntry({ at, kind, text, details }: TimelineEntry): string {
  const first = `${toIso(at)}  ${kind.padEnd(KIND_WIDTH)}  ${printable(text)}`;
  return [first, ...details.map((detail) => `${INDENT}${printable(detail)}`)].join('\n');
}

/** Stored text for a sentence: short enough to read. The data has all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}
