import type { UnixMs } from './time.ts';

/** The kinds of entries in a timeline. Entries with the same time are sorted in this order, with causes before their effects. */
export const TIMELINE_KINDS = [
  'added',
  'requested',
  'allocated',
  'operator',
  'withdrawn',
  'transferred',
  'sent',
  'sighted',
  'orphaned',
  'expired',
  'matched',
  'duplicate',
  'unmatched',
  'resolved',
  'taken-back',
  'event',
  'attempt',
  'delivery',
  'balance',
] as const;

type TimelineKind = (typeof TIMELINE_KINDS)[number];

/** A fact or decision. `text` is one plain sentence, `details` contains further facts, and `data` contains the same for machines. */
export type TimelineEntry = {
  at: UnixMs;
  kind: TimelineKind;
  text: string;
  details: readonly string[];
  data: Readonly<Record<string, unknown>>;
};

/** Sorts entries by time, then by kind. Entries that are equal in both keep their order. */
export function orderTimeline(entries: readonly TimelineEntry[]): TimelineEntry[] {
  return entries.toSorted((left, right) => left.at - right.at || rank(left) - rank(right));
}

function rank({ kind }: TimelineEntry): number {
  return TIMELINE_KINDS.indexOf(kind);
}
