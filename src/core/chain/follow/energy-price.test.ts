import { expect, test } from 'vitest';
import { AppError } from '../../domain/errors.ts';
import { unixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import { createEnergyPrice } from './watcher.ts';

const HOUR = 3_600_000;

/** Operators that name a price, refuse (`null`), or say nothing of use (`undefined`). */
function setUp(...prices: (number | null | undefined)[]) {
  let at = 0;
  let asked = 0;
  let named = prices;
  const pool = {
    available: async () =>
      prices.map(
        (_, index) =>
          ({
            operator: `operator ${index}`,
            ask: async () => {
              asked += 1;
              if (named[index] === null) throw new AppError('NODE_REFUSED', 'no', { retryable: true });
              return named[index] ?? null;
            },
          }) as unknown as Node,
      ),
  };
  const price = createEnergyPrice({ pool, now: () => unixMs(1_000_000 + at) }, () => at);
  /** As often as the watcher does within so many milliseconds. */
  const pass = async (ms: number) => {
    for (const end = at + ms; at < end; at += 2000) price.refresh();
    await new Promise(setImmediate);
  };
  return { price, pass, asked: () => asked, name: (...next: typeof prices) => (named = next) };
}

test('two operators are asked soon after the start and then once an hour', async () => {
  const { price, pass, asked } = setUp(100, 100, 100);
  await pass(14_000);
  expect([asked(), price.seen()]).toEqual([0, null]);
  await pass(4000);
  expect([asked(), price.seen()]).toEqual([2, { sun: 100, at: 1_018_000 }]);
  await pass(HOUR - 10_000);
  expect(asked()).toBe(2);
  await pass(20_000);
  expect(asked()).toBe(4);
});

test('one operator is enough where it is the only one that says it; two that differ say nothing', async () => {
  for (const prices of [[100], [100, null], [undefined, 100]]) {
    const { price, pass } = setUp(...prices);
    await pass(20_000);
    expect(price.seen()?.sun).toBe(100);
  }
  for (const prices of [[], [null, null], [100, 900]]) {
    const { price, pass } = setUp(...prices);
    await pass(20_000);
    expect(price.seen()).toBe(null);
  }
});

test('while nodes say nothing, the last price stays with its time', async () => {
  const { price, pass, name } = setUp(100, 100);
  await pass(20_000);
  name(null, null);
  await pass(HOUR);
  expect(price.seen()).toMatchObject({ sun: 100, at: 1_020_000 });
  name(210, 210);
  await pass(HOUR);
  expect(price.seen()).toMatchObject({ sun: 210 });
});
