import type { UnixMs } from '../../domain/time.ts';
import { backoffMs } from '../../runtime/loop.ts';

export type Pace = ReturnType<typeof createBatchPace>;

/** The first pause after a miss is the block time divided by this number. Each further miss doubles the pause, up to a whole block time. */
const RETRY_SHARE = 16;
/**
 * If a block was available immediately, the next request is sent earlier by the block time divided by this number. After several such
 * blocks in a row, this step doubles each time.
 */
const EARLIER_SHARE = 600;
const STEADY_BLOCKS = 8;
/** If a block is found longer than this fraction of a block time after the last miss, it may have been available for a while. */
const KNOWN_SHARE = 0.3;
/**
 * If blocks seem to be more than a block time late, other nodes may already have the next one. After one in this many blocks, the next one
 * is therefore requested immediately.
 */
const PROBE_BLOCKS = 8;
/**
 * A block that has been missing for this fraction of a block time is requested from another node, which can still answer before the
 * following block is due.
 */
const OVERDUE_SHARE = 0.6;
/** While no one is waiting, the irreversible block is requested once per eight blocks. Up to three saved requests may be spent at once. */
const IDLE_BLOCKS = 8;
const MOST_SAVED = 3;
/** A private network may be faster than configured, so Quittance uses the median of this many block intervals. */
const KNOWN_STEPS = 9;
/** Sandbox networks don't produce blocks faster than this. Blocks that a test creates in a burst don't predict when the next one comes. */
const MIN_STEP_MS = 100;

/**
 * Decides when to request the next block and the newest irreversible block. Nodes limit requests, so an early request is wasted, and a late
 * one keeps a payer waiting. All times are in milliseconds; `nowMs` is wall-clock time.
 *
 * Learns how long after its timestamp a block becomes readable on the node, regardless of the offset between the two clocks. It estimates
 * this delay from blocks that were found shortly after a miss. `longestMs` is the block time; the chain may be faster. `earnedPerBlock`
 * returns how many requests for the irreversible block may be spent per block while payers are waiting.
 */
export function createBatchPace(longestMs: number, earnedPerBlock: () => number) {
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
    /**
     * Call this when the next block was available. Returns the pause until the following block is due. `isLate` means that another node was
     * asked first and didn't have it.
     */
    onBlock: (blockTime: UnixMs, nowMs: number, isLate: boolean): number => {
      blockMs = learnStep(blockTime);
      // The delay can't have been longer than the time since the block's timestamp. Without this limit, requests would stay late
      // permanently after the clock was set back.
      delayMs = Math.min(delayMs, nowMs - blockTime);
      if (isLate || (misses > 0 && nowMs - lastMissMs > blockMs * KNOWN_SHARE)) {
        // The block had already existed for a while, and only this node or the previously asked node lacked it. So there's nothing to
        // learn.
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
      // If an early attempt finds a block, the next block is tried early as well.
      if (delayMs > blockMs && (probe !== 'none' || unprobed > PROBE_BLOCKS)) {
        probe = probe === 'none' ? 'first' : 'further';
        unprobed = 0;
        return 0;
      }
      probe = 'none';
      return Math.max(0, Math.min(blockMs, dueMs - nowMs));
    },
    /** Call this when the next block wasn't available. Returns the pause until the next attempt. */
    onMiss: (nowMs: number): number => {
      const isVain = probe === 'first';
      probe = 'none';
      // This was only an early attempt, long before the block was due.
      if (isVain && dueMs > nowMs) return Math.min(blockMs, dueMs - nowMs);
      if (misses === 0 || nowMs < firstMissMs) firstMissMs = nowMs;
      misses += 1;
      lastMissMs = nowMs;
      const pauseMs = backoffMs(misses, { firstMs: blockMs / RETRY_SHARE, longestMs });
      const overdueInMs = firstMissMs + blockMs * OVERDUE_SHARE - nowMs;
      return overdueInMs > 0 ? Math.min(pauseMs, Math.ceil(overdueInMs)) : pauseMs;
    },
    /** Whether the next block has been missing for so long that another node should be asked before the block time is over. */
    isOverdue: (nowMs: number) => misses > 0 && nowMs - firstMissMs >= blockMs * OVERDUE_SHARE,
    /** Whether to spend a request on the newest irreversible block now. */
    maySpend: (isPayerWaiting: boolean, nowMs: number): boolean => {
      if (nowMs < lastSpentMs) lastSpentMs = Number.NEGATIVE_INFINITY;
      const isIdleTurn = nowMs - lastSpentMs >= IDLE_BLOCKS * blockMs;
      if (!isIdleTurn && !(isPayerWaiting && saved >= 1)) return false;
      saved = Math.max(-MOST_SAVED, saved - 1);
      lastSpentMs = nowMs;
      return true;
    },
  };
}

/** Returns a function that accepts the time of each block and returns the block interval, at most `longestMs`. */
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
