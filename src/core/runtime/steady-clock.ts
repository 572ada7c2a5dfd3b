/**
 * A clock that was set forward is believed after this time. By then an operator has seen the alarm `clock-wrong`, or the clock was right.
 */
const DOUBT_MS = 60 * 60_000;
/** Clock adjustments (slewing) between two reads are smaller than this. */
const JUMP_MS = 1000;

/**
 * Returns a clock that ignores forward jumps of the last hour, judged by the monotonic time between two reads. A clock that is set back is
 * believed at once.
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
