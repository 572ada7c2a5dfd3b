import { expect, test } from 'vitest';
import { inGroups } from './in-groups.ts';

test('items are mapped in their order, a group at the same time', async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  const map = async (item: number) => {
    running += 1;
    most = Math.max(most, running);
    // Later items of a group are ready earlier.
    for (let turn = 0; turn < 10 - item; turn += 1) await Promise.resolve();
    running -= 1;
    return item * 2;
  };
  expect(await inGroups([1, 2, 3, 4, 5, 6, 7], 3, map, (count) => done.push(count))).toEqual([2, 4, 6, 8, 10, 12, 14]);
  expect(most).toBe(3);
  expect(done).toEqual([3, 6, 7]);
  expect(await inGroups([], 3, map)).toEqual([]);
});

test('after a failure no further group starts', async () => {
  const started: number[] = [];
  const map = async (item: number) => {
    started.push(item);
    if (item === 2) throw new Error('2 failed');
    return item;
  };
  await expect(inGroups([1, 2, 3, 4], 2, map)).rejects.toThrow('2 failed');
  expect(started).toEqual([1, 2]);
});
