import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { givingWay } from './yield-to-event-loop.ts';

async function* numbers(count: number) {
  for (let number = 0; number < count; number += 1) {
    const untilMs = performance.now() + 3;
    while (performance.now() < untilMs);
    yield number;
  }
}

test('everything is handed on, in order, and an end before the last one ends the source', async () => {
  const seen: number[] = [];
  for await (const number of givingWay(numbers(5))) seen.push(number);
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  for await (const number of givingWay(numbers(5))) if (number === 1) break;
});

test('a busy event loop gets far more turns between two items than an idle one', async () => {
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      const untilMs = performance.now() + 1;
      while (performance.now() < untilMs);
      turns += 1;
      await turn();
    }
  })();
  // Milliseconds of other work during 4 items of 3 ms each. A share of one in 96 would be 1152; a quarter of that is still far above an
  // equal share.
  for await (const _ of givingWay(numbers(4)));
  isOver = true;
  await others;
  expect(turns).toBeGreaterThan(280);
});
