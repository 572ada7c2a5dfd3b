import type { AccountHex } from '@quittance/tron/address';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { solidHeight, solidThreshold } from './solidity.ts';

const producerOf = (index: number) => index.toString(16).padStart(40, '0') as AccountHex;

/** Blocks of consecutive heights by some of `count` producers, of which the first `voterCount` vote. */
const chain = fc.record({ count: fc.integer({ min: 1, max: 30 }), first: fc.nat(1000) }).chain(({ count, first }) =>
  fc.record({
    blocks: fc
      .array(fc.nat(count - 1), { maxLength: 80 })
      .map((turns) => turns.map((turn, index) => ({ number: first + index, producer: producerOf(turn) }))),
    voterCount: fc.integer({ min: 1, max: count }),
  }),
);
const votersOf = (count: number) => new Set(Array.from({ length: count }, (_, index) => producerOf(index)));

test('19 of 27, 4 of 5, 1 of 1 producers must have built on a block', () => {
  expect([27, 5, 4, 3, 2, 1].map(solidThreshold)).toEqual([19, 4, 3, 3, 2, 1]);
});

test('no number of producers, or none, has no threshold', () => {
  for (const count of [0, -1, 1.5, Number.NaN])
    expect(() => solidThreshold(count)).toThrow(`${count} active producers`);
  for (const threshold of [0, -1, Number.NaN]) {
    const reason = `a threshold of ${threshold} producers makes every block irreversible`;
    expect(() => solidHeight([], new Set(), threshold)).toThrow(reason);
  }
});

test('the threshold is what java-tron’s floating point arithmetic gives, for every possible number of producers', () => {
  for (let size = 1; size <= 1000; size += 1) {
    const position = Math.trunc(size * (1 - (70 * 1.0) / 100));
    expect(solidThreshold(size)).toBe(size - position);
  }
});

test('the height is the one at java-tron’s position among the sorted latest heights of the voters', () => {
  fc.assert(
    fc.property(chain, ({ blocks, voterCount }) => {
      const voters = votersOf(voterCount);
      const latest = [...voters].map((voter) => blocks.findLast(({ producer }) => producer === voter)?.number ?? -1);
      const position = Math.trunc(voterCount * (1 - (70 * 1.0) / 100));
      const expected = latest.sort((a, b) => a - b)[position] ?? -1;
      expect(solidHeight(blocks, voters, solidThreshold(voterCount)) ?? -1).toBe(expected);
    }),
  );
});

test('the height is the largest on which enough voters have built, counted one by one', () => {
  fc.assert(
    fc.property(chain, fc.integer({ min: 1, max: 30 }), ({ blocks, voterCount }, threshold) => {
      const voters = votersOf(voterCount);
      const enough = blocks.filter(({ number }) => {
        const above = blocks.filter((block) => block.number >= number && voters.has(block.producer));
        return new Set(above.map(({ producer }) => producer)).size >= threshold;
      });
      expect(solidHeight(blocks, voters, threshold)).toBe(enough.at(-1)?.number ?? null);
    }),
  );
});

test('one producer that makes every block makes none of them irreversible among three', () => {
  const blocks = Array.from({ length: 50 }, (_, index) => ({ number: index, producer: producerOf(0) }));
  expect(solidHeight(blocks, votersOf(3), solidThreshold(3))).toBeNull();
});
