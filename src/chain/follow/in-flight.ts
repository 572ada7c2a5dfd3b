/** How many ranges a node is asked for at the same time. */
export type InFlight = {
  hasRoom(): boolean;
  /** A range is asked for. Call what it returns when the range is there; not when it failed. */
  begin(): { onAnswer(): void; onEnd(): void };
  /** The shortest time that a range took lately, in milliseconds; infinite before the first. */
  leastMs(): number;
};

/** Before anything is measured. */
const FIRST = 2;
/**
 * `most`: of one node. `wait`: ranges that wait somewhere, in a queue of the node, its budget, the line or this process; with fewer than the
 * first number the way is empty now and then, more than the second only take memory.
 */
export type InFlightBounds = { most: number; wait: readonly [number, number] };
/** The shortest time is measured anew after so many ranges, for blocks grow, and ways become longer. It costs the time of about one. */
const PROBE_RANGES = 200;

/**
 * As many as the way to the node holds, found as TCP Vegas does: the time that a range takes beyond the shortest is time that it
 * waited for others. While hardly any waits, one more is sent, up to `most`; when many do, one fewer.
 */
export function createInFlight(
  { most, wait: [few, many] }: InFlightBounds,
  clockMs = () => performance.now(),
): InFlight {
  let size = FIRST;
  let underWay = 0;
  let leastMs = Number.POSITIVE_INFINITY;
  let untilProbe = 0;
  /** Hardly any are sent until one came back that met no queue. */
  const limit = () => (untilProbe === 0 ? FIRST : size);
  const learn = (tookMs: number, wasFull: boolean) => {
    untilProbe = Math.max(0, untilProbe - 1);
    leastMs = Math.min(tookMs, leastMs);
    const waiting = size * (1 - leastMs / tookMs);
    if (waiting > many) size = Math.max(FIRST, size - 1);
    else if (waiting < few && wasFull) size = Math.min(most, size + 1);
  };
  return {
    hasRoom: () => underWay < limit(),
    leastMs: () => leastMs,
    begin: () => {
      const startedMs = clockMs();
      underWay += 1;
      const wasFull = underWay >= size;
      const isProbe = untilProbe === 0;
      return {
        onEnd: () => {
          underWay -= 1;
        },
        onAnswer: () => {
          const tookMs = Math.max(1, clockMs() - startedMs);
          if (untilProbe > 0) learn(tookMs, wasFull);
          else if (isProbe) {
            leastMs = tookMs;
            untilProbe = PROBE_RANGES;
          }
        },
      };
    },
  };
}
