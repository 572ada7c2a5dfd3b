import { keepNewest } from '../runtime/keep-newest.ts';
import { backoffMs } from '../runtime/loop.ts';

/**
 * Orders (UUIDs) that can't expire because their row fails its check or because the database refuses the change. Each is retried after a
 * pause.
 */
export type HeldBack = {
  /** Returns the orders that aren't due for a retry yet. */
  resting(): string[];
  list(): { invoiceId: string; reason: string }[];
  /** Records which of the orders that a round attempted have failed. `isWhole` means that no other orders were overdue. */
  note(failed: ReadonlyMap<string, string>, tried: readonly string[], isWhole: boolean): void;
};

/** With more orders than this, each round finds the oldest of them again, so other orders expire more slowly. */
const MAX = 10_000;
const BACKOFF = { firstMs: 5000, longestMs: 300_000 };

export function createHeldBack(nowMs = () => performance.now()): HeldBack {
  const held = new Map<string, { reason: string; failures: number; untilMs: number }>();
  const isResting = ({ untilMs }: { untilMs: number }) => untilMs > nowMs();
  return {
    resting: () => [...held].flatMap(([id, entry]) => (isResting(entry) ? [id] : [])),
    list: () => [...held].map(([invoiceId, { reason }]) => ({ invoiceId, reason })),
    note: (failed, tried, isWhole) => {
      const gone = isWhole ? [...held].flatMap(([id, entry]) => (isResting(entry) ? [] : [id])) : tried;
      for (const id of gone) if (!failed.has(id)) held.delete(id);
      for (const [id, reason] of failed) {
        const failures = (held.get(id)?.failures ?? 0) + 1;
        keepNewest(held, id, { reason, failures, untilMs: nowMs() + backoffMs(failures, BACKOFF) }, MAX);
      }
    },
  };
}
