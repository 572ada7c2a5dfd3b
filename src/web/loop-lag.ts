import { monitorEventLoopDelay } from 'node:perf_hooks';

export type LoopLag = { lagMs(): number; stop(): void };

/** How often the event loop is looked at, and over how long a figure is made: a tenth of what a client notices. */
const [RESOLUTION_MS, WINDOW_MS] = [20, 250];

/**
 * Measures how long what comes at a random moment waits for the event loop, in milliseconds, over the last quarter of a second. Not the
 * mean of the turns, in which a hundred short ones hide the long one that nearly everybody met.
 */
export function startLoopLag(): LoopLag {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let lagMs = 0;
  const timer = setInterval(() => {
    lagMs = lagOf(histogram.mean / 1e6, histogram.stddev / 1e6);
    histogram.reset();
  }, WINDOW_MS);
  timer.unref();
  return {
    lagMs: () => lagMs,
    stop: () => {
      clearInterval(timer);
      histogram.disable();
    },
  };
}

/** A moment falls into a turn in proportion to its length, so the turn that it meets lasts E[d²]/E[d]. */
export function lagOf(meanMs: number, deviationMs: number): number {
  // Without a turn since the last window there is nothing to say, and the histogram says NaN.
  if (!(meanMs > 0)) return 0;
  return Math.max(0, meanMs + deviationMs ** 2 / meanMs - RESOLUTION_MS);
}
