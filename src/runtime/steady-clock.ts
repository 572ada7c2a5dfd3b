/** A clock that was put forward is believed after so long: by then somebody has seen the alarm `clock-wrong`, or it was right. */
const DOUBT_MS = 60 * 60_000;
/** Clocks are drawn to the right time by less than this between two looks. */
const JUMP_MS = 1000;

/**
 * The time by a clock, but not what it was put forward by within the last hour, as time itself passed between two looks. One that is set
 * back is believed at once.
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
