import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { inSlices } from './in-slices.ts';

const NEVER_MS = 3_600_000;

test('many items are done together, each once however often it was added, and none that was removed', async () => {
  const done: number[] = [];
  const slices = inSlices<number>(NEVER_MS, (item) => done.push(item));
  for (const item of [1, 2, 1, 3, 4, 5, 2]) slices.add(item);
  slices.remove(5);
  expect(done).toEqual([]);
  await turn();
  expect(done).toEqual([1, 2, 3, 4]);
});

test('when the time of a slice is over, whatever else there is to do comes before the next item', async () => {
  const done: string[] = [];
  const slices = inSlices<string>(0, (item) => done.push(item));
  for (const item of ['first', 'second', 'third']) slices.add(item);
  for (const count of [1, 2, 3]) {
    await turn();
    expect(done).toHaveLength(count);
  }
});

test('an item may be added again by its own work', async () => {
  let times = 0;
  const slices = inSlices<string>(0, (item) => {
    times += 1;
    if (times < 3) slices.add(item);
  });
  slices.add('again');
  await turn();
  await turn();
  await turn();
  expect(times).toBe(3);
});
