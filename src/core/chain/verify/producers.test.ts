import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import type { ProducerSet } from '../../store/chain/producer-sets.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy, type KnownProducers, solidHeightBy } from './producers.ts';

const account = (index: number, key = 0) => `${key}${index.toString(16)}`.padStart(40, '0') as AccountHex;

/** A set of these producers, each of which signs with key number `key`. */
function setOf(indexes: readonly number[], key = 1): ProducerSet {
  const producers = indexes.map((index) => ({ account: account(index), signer: account(index, key) }));
  return { chainTime: unixMs(1_800_000_000_000), reason: 'vote', producers, nodes: [] };
}

const range = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

function known(newest: ProducerSet, ...earlier: ProducerSet[]): KnownProducers {
  const adoptedAt = unixMs(1_800_000_000_000);
  return { newest: { ...newest, adoptedAt }, earlier: earlier.map((set) => ({ ...set, adoptedAt })) } as KnownProducers;
}

const headerBy = (index: number, key: number) =>
  ({ producer: account(index), signer: account(index, key) }) as unknown as ProvenHeader;

test('a block counts by the key of its own producer only', () => {
  const producers = known(setOf(range(0, 27)));
  expect(isSignedBy(producers, headerBy(3, 1))).toBe(true);
  expect(isSignedBy(producers, headerBy(3, 2))).toBe(false);
  expect(isSignedBy(producers, headerBy(30, 1))).toBe(false);
  expect(isSignedBy(producers, { ...headerBy(3, 1), signer: account(4, 1) })).toBe(false);
});

test('the keys of a moment ago still count, for blocks made before the change are still read', () => {
  const producers = known(setOf(range(1, 27), 2), setOf(range(0, 27)));
  expect(isSignedBy(producers, headerBy(0, 1))).toBe(true);
  expect(isSignedBy(producers, headerBy(5, 1))).toBe(true);
  expect(isSignedBy(producers, headerBy(5, 2))).toBe(true);
  expect(isSignedBy(producers, headerBy(0, 2))).toBe(false);
});

/** Blocks one after the other, by these producers, each signed with key number `key`. */
const blocksBy = (indexes: readonly number[], key = 1) =>
  indexes.map((index, place) => ({ ...headerBy(index, key), number: 100 + place }));

test.each([
  [1, 1],
  [5, 4],
  [27, 19],
])('of %i producers %i decide', (count, threshold) => {
  const producers = known(setOf(range(0, count)));
  expect(solidHeightBy(producers, blocksBy(range(0, threshold)))).toBe(100);
  expect(solidHeightBy(producers, blocksBy(range(1, threshold - 1)))).toBeNull();
});

test('each set decides by its own members and its own 70 %: members of two sets are not added up', () => {
  const producers = known(setOf(range(8, 27)), setOf(range(0, 27)));
  // 18 of each set, 26 of both.
  const almost = [...range(0, 8), ...range(27, 8), ...range(8, 10)];
  expect(solidHeightBy(producers, blocksBy(almost))).toBeNull();
  expect(solidHeightBy(producers, blocksBy([...almost, 0, 27, 8]))).toBeNull();
  expect(solidHeightBy(producers, blocksBy([...almost, 18]))).toBe(108);
  expect(solidHeightBy(producers, blocksBy(range(0, 19)))).toBe(100);
});

test('keys of two sets are not added up either', () => {
  const producers = known(setOf(range(0, 27), 2), setOf(range(0, 27)));
  const mixed = [
    ...blocksBy(range(0, 18), 1),
    ...blocksBy(range(18, 9), 2).map((block) => ({ ...block, number: 130 })),
  ];
  expect(solidHeightBy(producers, mixed)).toBeNull();
  expect(solidHeightBy(producers, blocksBy(range(0, 19), 2))).toBe(100);
});
