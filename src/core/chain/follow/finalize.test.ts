import { expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { spareAsks } from './finalize.ts';

const BLOCK_MS = 3000;
const DAY_MS = 86_400_000;
const MIDNIGHT = 20_000 * DAY_MS;
const node = (operator: string, left: number | null) => ({ operator, requestsLeft: () => left });
const spare = (nodes: ReturnType<typeof node>[], afterMs = 0) => spareAsks(nodes, BLOCK_MS, unixMs(MIDNIGHT + afterMs));

test('a node without a limit is asked what is irreversible at each block, if payers wait', () => {
  expect(spare([node('a', null)])).toBe(1);
});

test('a free key lasts the day if it is asked at each block', () => {
  expect(spare([node('a', 100_000)])).toBe(1);
  let left = 100_000;
  for (let block = 0; block < 28_800; block += 1) {
    left -= 2.3 + spare([node('a', left)], block * BLOCK_MS);
  }
  expect(left).toBeGreaterThan(0);
});

test('where catching up took most of the day’s requests, those for the blocks come first', () => {
  expect(spare([node('a', 40_000)])).toBe(0.3);
  expect(spare([node('a', 40_000)], DAY_MS / 2)).toBeCloseTo(0.38, 1);
  expect(spare([node('a', 0)])).toBe(0.3);
});

test('where nodes of several operators are there, the limit of the one that is asked counts', () => {
  expect(spare([node('a', 10), node('b', null)])).toBe(1);
  expect(spare([node('a', 10), node('a', null)])).toBe(0.3);
});
