import { expect, test } from 'vitest';
import { eventually } from '../../../test/support/service.ts';
import { lagOf, startLoopLag } from './server.ts';

test('the lag is what a random moment meets, not the mean of the turns', () => {
  // Twenty turns of 20 ms and one of 400: half of all moments fall into the long one.
  const turns = [...Array<number>(20).fill(20), 400];
  const mean = turns.reduce((sum, ms) => sum + ms, 0) / turns.length;
  const deviation = Math.sqrt(turns.reduce((sum, ms) => sum + (ms - mean) ** 2, 0) / turns.length);
  expect(lagOf(mean, deviation)).toBeCloseTo((20 * 20 * 20 + 400 * 400) / 800 - 20);
  expect(lagOf(20, 0)).toBe(0);
});

test('nothing measured is no lag', () => {
  expect(lagOf(Number.NaN, Number.NaN)).toBe(0);
});

test('an event loop that is blocked is seen, and seen to be free again', async () => {
  const lag = startLoopLag();
  try {
    await eventually(
      () => {
        const untilMs = performance.now() + 300;
        while (performance.now() < untilMs);
        return lag.lagMs();
      },
      (ms) => ms > 150,
    );
    await eventually(
      () => lag.lagMs(),
      (ms) => ms < 150,
    );
  } finally {
    lag.stop();
  }
});
