import { toIso } from '../../domain/time.ts';
import { orderTimeline, type TimelineEntry } from '../../domain/timeline.ts';
import type { Hint } from '../hint.ts';
import { printable } from '../input/printable.ts';
import type { ExplanationView } from './views.ts';

/** A list that is too long to show whole: `shown` of `total` entries; `what` names them. */
export type Omission = { what: string; shown: number; total: number };

/** A step to take now, and the command for it, if there is one. */
export type Step = { says: string; hint?: Hint };

/** The answer to one question: the verdict first, then what it is about, then every fact and decision by time. */
export type Explanation = {
  /** Plain sentences, the most important one first. */
  verdict: readonly string[];
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
export function toView({ subject, verdict, timeline, omissions, next }: Explanation): ExplanationView {
  return {
    subject,
    verdict: printable(verdict.join(' ')),
    timeline: timeline.map(({ at, kind, text, data }) => ({ at: toIso(at), kind, text: printable(text), ...data })),
    ...(omissions.length === 0 ? {} : { notShown: [...omissions] }),
    ...(next.length === 0 ? {} : { next: next.map(describeStep) }),
  };
}

/** `all about the invoice: quittance explain inv_…` */
export function describeStep({ says, hint }: Step): string {
  return printable(hint === undefined ? says : `${says}: quittance ${[hint.command, ...hint.args].join(' ')}`);
}

/** Stored text for a sentence: short enough to read. The data has all of it. */
export function shorten(text: string, length = 80): string {
  const characters = [...text];
  return characters.length > length ? `${characters.slice(0, length).join('')}…` : text;
}
