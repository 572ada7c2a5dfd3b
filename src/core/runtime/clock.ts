/** Returns the current time in Unix milliseconds. Tests pass a clock that they control. */
export type Clock = { now(): number };

export const systemClock: Clock = { now: () => Date.now() };

/**
 * If the clock was set forward, the new time is accepted after this long. By then, an operator has seen the alarm `clock-wrong`, unless the
 * new time is right.
 */
const DOUBT_MS = 60 * 60_000;
/** Gradual clock adjustments (slewing) between two reads are smaller than this. */
const JUMP_MS = 1000;

/**
 * Returns a clock that ignores forward jumps within the last hour. It detects them by the monotonic time between two reads. If the clock is
 * set back, the new time is accepted immediately.
 */
export function createSteadyClock(now: () => number, monotonicMs = () => performance.now()): () => number {
  let known = { at: now(), ms: monotonicMs() };
  let doubtedMs: number | null = null;
  return () => {
    const [at, ms] = [now(), monotonicMs()];
    const expected = Math.round(known.at + (ms - known.ms));
    const isAhead = at > expected + JUMP_MS;
    doubtedMs = isAhead ? (doubtedMs ?? ms) : null;
    if (isAhead && ms - (doubtedMs ?? ms) < DOUBT_MS) return expected;
    doubtedMs = null;
    known = { at, ms };
    return at;
  };
}
