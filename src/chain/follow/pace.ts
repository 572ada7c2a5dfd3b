import type { UnixMs } from '../../domain/time.ts';
import { backoffMs } from '../../runtime/backoff.ts';

/**
 * When to ask for the next block, and when for what is irreversible. Nodes limit requests, so one that comes too early is a
 * loss, and one that comes too late makes a payer wait. Times are in milliseconds; `nowMs` is the wall clock.
 */
export type Pace = {
  /** The next block was there. Returns the pause until the one after it is due. `isLate`: another node was asked in vain before. */
  onBlock(blockTime: UnixMs, nowMs: number, isLate: boolean): number;
  /** It was not there yet. Returns the pause until the next try. */
  onMiss(nowMs: number): number;
  /** The next block has been missed for so long that another node should be asked within the same block time. */
  isOverdue(nowMs: number): boolean;
  /** Whether to spend a request on what is irreversible now. */
  maySpend(isPayerWaiting: boolean, nowMs: number): boolean;
};

/** First pause after a miss, as a part of the block time; it doubles up to a whole one. */
const RETRY_SHARE = 16;
/** After a block that was there at once we come earlier by this part of a block time; after some in a row, by twice as much each. */
const EARLIER_SHARE = 600;
const STEADY_BLOCKS = 8;
/** A block that is found longer than this part of a block time after the last miss may have been there for long. */
const KNOWN_SHARE = 0.3;
/** A block that seems later than a whole block time may be there, and only the node is behind: one in so many is asked for at once. */
const PROBE_BLOCKS = 8;
/** A block that is missed for this part of a block time is asked of another node: that answers before the next one is due. */
const OVERDUE_SHARE = 0.6;
/** Requests for what is irreversible: an eighth a block while nobody waits; saved ones may be spent at once, three at most. */
const IDLE_BLOCKS = 8;
const MOST_SAVED = 3;
/** A private network may be faster than we were told: the middle one of so many times between blocks counts. */
const KNOWN_STEPS = 9;
/** The sandbox makes no blocks faster than this; those that a test makes at once say nothing about the next. */
const MIN_STEP_MS = 100;

/**
 * Learns how long after its time a block can be read from the node, whatever the two clocks say: from blocks that were found
 * right after a miss. `longestMs`: the block time, unless the chain is faster. `earnedPerBlock`: how many requests for what is
 * irreversible a block may cost while payers wait.
 */
export function createPace(longestMs: number, earnedPerBlock: () => number): Pace {
  const learnStep = createSteps(longestMs);
  let blockMs = longestMs;
  let delayMs = 0;
  let earlierMs = blockMs / EARLIER_SHARE;
  let hits = 0;
  let misses = 0;
  let firstMissMs = 0;
  let lastMissMs = 0;
  let probe: 'none' | 'first' | 'further' = 'none';
  let unprobed = PROBE_BLOCKS;
  let dueMs = 0;
  let saved = MOST_SAVED;
  let lastSpentMs = Number.NEGATIVE_INFINITY;
  return {
    onBlock(blockTime, nowMs, isLate) {
      blockMs = learnStep(blockTime);
      // It took no longer than this; and a clock that was set back must not make us late for ever.
      delayMs = Math.min(delayMs, nowMs - blockTime);
      if (isLate || (misses > 0 && nowMs - lastMissMs > blockMs * KNOWN_SHARE)) {
        // It was there long before, and only this node, or the one asked before it, did not show it: nothing is learnt.
        earlierMs = blockMs / EARLIER_SHARE;
      } else if (misses > 0) {
        delayMs = nowMs - blockTime;
        hits = 0;
        earlierMs = blockMs / EARLIER_SHARE;
      } else {
        hits += 1;
        delayMs -= earlierMs;
        if (hits > STEADY_BLOCKS) earlierMs = Math.min(blockMs / 2, earlierMs * 2);
      }
      misses = 0;
      saved = Math.min(MOST_SAVED, saved + earnedPerBlock());
      dueMs = blockTime + blockMs + delayMs;
      unprobed += 1;
      // If an early try finds a block, the next block is tried early as well.
      if (delayMs > blockMs && (probe !== 'none' || unprobed > PROBE_BLOCKS)) {
        probe = probe === 'none' ? 'first' : 'further';
        unprobed = 0;
        return 0;
      }
      probe = 'none';
      return Math.max(0, Math.min(blockMs, dueMs - nowMs));
    },
    onMiss(nowMs) {
      const isVain = probe === 'first';
      probe = 'none';
      // This was only an early try, long before the block is due.
      if (isVain && dueMs > nowMs) return Math.min(blockMs, dueMs - nowMs);
      if (misses === 0 || nowMs < firstMissMs) firstMissMs = nowMs;
      misses += 1;
      lastMissMs = nowMs;
      const pauseMs = backoffMs(misses, { firstMs: blockMs / RETRY_SHARE, longestMs });
      const overdueInMs = firstMissMs + blockMs * OVERDUE_SHARE - nowMs;
      return overdueInMs > 0 ? Math.min(pauseMs, Math.ceil(overdueInMs)) : pauseMs;
    },
    isOverdue: (nowMs) => misses > 0 && nowMs - firstMissMs >= blockMs * OVERDUE_SHARE,
    maySpend(isPayerWaiting, nowMs) {
      if (nowMs < lastSpentMs) lastSpentMs = Number.NEGATIVE_INFINITY;
      const isIdleTurn = nowMs - lastSpentMs >= IDLE_BLOCKS * blockMs;
      if (!isIdleTurn && !(isPayerWaiting && saved >= 1)) return false;
      saved = Math.max(-MOST_SAVED, saved - 1);
      lastSpentMs = nowMs;
      return true;
    },
  };
}

/** Returns a function that takes the time of each block, and returns the time between two blocks: at most `longestMs`. */
function createSteps(longestMs: number): (blockTime: UnixMs) => number {
  const steps: number[] = [];
  let lastTime = Number.NaN;
  let stepMs = longestMs;
  return (blockTime) => {
    if (blockTime > lastTime) steps.push(blockTime - lastTime);
    lastTime = blockTime;
    if (steps.length < KNOWN_STEPS) return stepMs;
    const middle = steps.toSorted((left, right) => left - right)[(KNOWN_STEPS - 1) / 2] ?? longestMs;
    stepMs = Math.min(longestMs, Math.max(MIN_STEP_MS, middle));
    steps.shift();
    return stepMs;
  };
}
