import { monitorEventLoopDelay } from 'node:perf_hooks';

export type LoopLag = { lagMs(): number; stop(): void };

/** How often the event loop is sampled, and the window of a figure: a tenth of what a client notices. */
const [RESOLUTION_MS, WINDOW_MS] = [20, 250];

/**
 * Measures how long an event at a random moment waits for the event loop, in milliseconds, over the last quarter of a second. The mean of
 * the turns would not do: a hundred short turns hide the long one that nearly every event met.
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

/** A moment falls into a turn in proportion to the turn's length, so the turn that it meets lasts E[d²]/E[d]. */
export function lagOf(meanMs: number, deviationMs: number): number {
  // Without a turn since the last window there is nothing to measure, and the histogram says NaN.
  if (!(meanMs > 0)) return 0;
  return Math.max(0, meanMs + deviationMs ** 2 / meanMs - RESOLUTION_MS);
}
