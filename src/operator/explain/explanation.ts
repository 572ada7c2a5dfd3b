import { type Hint, joinTexts, say, type Text } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import { orderTimeline, TIMELINE_KINDS, type TimelineEntry } from '../../domain/timeline.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { Said, Time } from '../fields.ts';
import { printable } from '../input/problems.ts';

const Facts = Type.Record(Type.String(), Type.Unknown());

/** All that is known of an invoice, a transaction or an address; `subject` and the entries have more members, by what they are. */
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

/** A list that is too long to show whole: `shown` of `total` entries; `what` names them. */
export type Omission = { what: string; shown: number; total: number };

/** A step to take now, and the command for it, if there is one. */
export type Step = { says: Text; hint?: Hint };

/** The answer to one question: the verdict first, then what it is about, then every fact and decision by time. */
export type Explanation = {
  /** Plain sentences, the most important one first. */
  verdict: readonly Text[];
  subject: Readonly<Record<string, unknown>>;
  fields: readonly (readonly [name: string, value: string | null])[];
  timeline: readonly TimelineEntry[];
  omissions: readonly Omission[];
  next: readonly Step[];
  /** The ledger does not know the subject. */
  isUnknown?: true;
};

/** Sorts the entries by time, and keeps the omissions that leave something out. */
export function arrange({ timeline, omissions, ...rest }: Explanation): Explanation {
  const left = omissions.filter(({ shown, total }) => total > shown);
  return { ...rest, timeline: orderTimeline(timeline), omissions: left };
}

/** An explanation for machines. Stored text cannot change what a terminal shows. */
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

/** `all about the invoice: quittance explain inv_…` */
export function describeStep({ says, hint }: Step): Text {
  const shown = printableText(says);
  return hint === undefined ? shown : say`${shown}: ${hint}`;
}

/** What names fields and steps is ours, and holds nothing that was stored. */
export function printableText(text: Text): Text {
  return typeof text === 'string' ? printable(text) : text;
}
