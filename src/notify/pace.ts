/** How many messages a channel may be sent at the moment: `one`, `all` that waits in a digest, or none yet. */
export type Pace = {
  next(waiting: { count: number; wasHeld: boolean }): 'one' | 'all' | 'none';
  /** A message was sent. */
  sent(kind: 'one' | 'all'): void;
};

/** What comes one by one is sent one by one, and a storm in one message every 15 s: each alarm still arrives within a minute. */
const SINGLES_PER_MINUTE = 5;
const MINUTE_MS = 60_000;
const BETWEEN_DIGESTS_MS = 15_000;

/** Bounds what one channel is sent. `elapsedMs`: a clock that only goes forward. */
export function createPace(elapsedMs: () => number): Pace {
  let singles: number[] = [];
  let digestAtMs = Number.NEGATIVE_INFINITY;
  return {
    next: ({ count, wasHeld }) => {
      const now = elapsedMs();
      singles = singles.filter((at) => now - at < MINUTE_MS);
      if (count <= SINGLES_PER_MINUTE - singles.length && !(wasHeld && count > 1)) return 'one';
      return now - digestAtMs < BETWEEN_DIGESTS_MS ? 'none' : 'all';
    },
    sent: (kind) => {
      if (kind === 'one') singles.push(elapsedMs());
      else digestAtMs = elapsedMs();
    },
  };
}
