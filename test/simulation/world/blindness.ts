import type { Fault } from '@quittance/devnet/faults/faults';
import { REFUSALS } from '@quittance/devnet/faults/refusals';

/** A node with one of these shows no block at all. */
const SHOWS_NOTHING = new Set([...REFUSALS.keys(), 'truncated', 'hang', 'reset', 'slow-drip', 'bracket-bomb']);

/**
 * Records when the chain isn't visible because every node refuses everything. A span begins with the newest existing block's time, because
 * no later one can have been examined.
 */
export function createBlindness({ nowMs, headTimeMs }: { nowMs(): number; headTimeMs(): number }) {
  const spans: { fromMs: number; toMs: number | null }[] = [];
  return {
    spans,
    look: (nodes: readonly { faults: readonly Fault[] }[]): void => {
      const isSeen = nodes.some(({ faults }) => !faults.some(({ kind }) => SHOWS_NOTHING.has(kind)));
      const last = spans.at(-1);
      const isOpen = last !== undefined && last.toMs === null;
      if (isSeen && isOpen) last.toMs = nowMs();
      if (!isSeen && !isOpen) spans.push({ fromMs: Math.max(nowMs(), headTimeMs()), toMs: null });
    },
  };
}
