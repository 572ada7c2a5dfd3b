import { type Hint, say, type Text } from '../../../core/domain/message.ts';
import { TIMELINE_KINDS, type TimelineEntry } from '../../../core/domain/timeline.ts';
import { Type } from '../../../core/runtime/type.ts';
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

/** Returns text such as `all about the invoice: quittance explain inv_…`. */
export function describeStep({ says, hint }: Step): Text {
  const shown = printableText(says);
  return hint === undefined ? shown : say`${shown}: ${hint}`;
}

/** Escapes only strings, because a message with fields and steps is our own text and contains no stored data. */
export function printableText(text: Text): Text {
  return typeof text === 'string' ? printable(text) : text;
}
