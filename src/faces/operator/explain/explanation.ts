import { type Hint, joinTexts, say, type Text } from '../../../core/domain/message.ts';
import { toIso } from '../../../core/domain/time.ts';
import { orderTimeline, TIMELINE_KINDS, type TimelineEntry } from '../../../core/domain/timeline.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import { formatFields, type Printed, writeText } from '../command-words.ts';
import { Said, Time } from '../fields.ts';
import { printable } from '../input/problems.ts';

const Facts = Type.Record(Type.String(), Type.Unknown());

/** An explanation for programs. `subject` and the entries have additional members, depending on their kind. */
export const ExplanationView = Type.Object({
  subject: Facts,
  verdict: Said,
  timeline: Type.Array(
    Type.Intersect([Type.Object({ at: Time, kind: Type.Enum(TIMELINE_KINDS), text: Type.String() }), Facts]),
  ),
  notShown: Type.Optional(
    Type.Array(Type.Object({ what: Type.String(), shown: Type.Integer(), total: Type.Integer() })),
  ),
  next: Type.Optional(Type.Array(Said)),
});

/** A list that is too long to be shown completely. `what` describes the entries; `shown` of the `total` entries are listed. */
export type Omission = { what: string; shown: number; total: number };

/** A recommended next step, with its command if there's one. */
export type Step = { says: Text; hint?: Hint };

/** An explanation in reading order: the verdict, the subject, and then all facts and decisions in order of time. */
export type Explanation = {
  /** Plain sentences, most important first. */
  verdict: readonly Text[];
  subject: Readonly<Record<string, unknown>>;
  fields: readonly (readonly [name: string, value: string | null])[];
  timeline: readonly TimelineEntry[];
  omissions: readonly Omission[];
  next: readonly Step[];
  /** Set if the subject isn't in the ledger. */
  isUnknown?: true;
};

/** Sorts the entries by time, and drops omissions that don't omit anything. */
export function arrange({ timeline, omissions, ...rest }: Explanation): Explanation {
  const left = omissions.filter(({ shown, total }) => total > shown);
  return { ...rest, timeline: orderTimeline(timeline), omissions: left };
}

/** Converts an explanation for programs. Stored text is escaped so that it can't control a terminal. */
export function toView(explanation: Explanation): Static<typeof ExplanationView> {
  const { subject, verdict, timeline, omissions, next } = explanation;
  return {
    subject,
    verdict: joinTexts(verdict.map(printableText), ' '),
    timeline: timeline.map(({ at, kind, text, data }) => ({ at: toIso(at), kind, text: printable(text), ...data })),
    ...(omissions.length === 0 ? {} : { notShown: [...omissions] }),
    ...(next.length === 0 ? {} : { next: next.map(describeStep) }),
  };
}

/** Returns text such as `all about the invoice: quittance explain inv_…`. */
export function describeStep({ says, hint }: Step): Text {
  const shown = printableText(says);
  return hint === undefined ? shown : say`${shown}: ${hint}`;
}

/** Escapes only strings, because a message with fields and steps is our own text and contains no stored data. */
export function printableText(text: Text): Text {
  return typeof text === 'string' ? printable(text) : text;
}

/** Writes an explanation for people. */
export function printExplanation({ verdict, fields, timeline, omissions, next, isUnknown }: Explanation): Printed {
  return {
    text: [
      verdict.map((text) => writeText(printableText(text))).join('\n'),
      formatFields(fields),
      timeline.map(formatEntry).join('\n'),
      omissions.map(({ what, shown, total }) => `not shown: ${total - shown} more of ${total} ${what}`).join('\n'),
    ],
    next: next.map(describeStep),
    isUnknown: isUnknown === true,
  };
}

/** The width of the longest kind. */
const KIND_WIDTH = 11;
const INDENT = ' '.repeat('2026-09-01T12:00:00.000Z'.length + 2 + KIND_WIDTH + 2);

function formatEntry({ at, kind, text, details }: TimelineEntry): string {
  const first = `${toIso(at)}  ${kind.padEnd(KIND_WIDTH)}  ${printable(text)}`;
  return [first, ...details.map((detail) => `${INDENT}${printable(detail)}`)].join('\n');
}
