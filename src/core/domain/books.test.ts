import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Books, balanceBooks } from './books.ts';

const opening = { block: 100, micro: 50n };
const balance = (movements: Books['movements'], balanceMicro: bigint, low = 200, high = 200) =>
  balanceBooks({ opening, beforeMicro: 0n, movements }, { low, high, balanceMicro });

test('opening, what came in, less what left, is the balance', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ block: fc.integer({ min: 101, max: 200 }), micro: fc.bigInt(-99n, 99n) })),
      (movements) => {
        const sum = movements.reduce((total, { micro }) => total + micro, 50n);
        expect(balance(movements, sum)).toMatchObject({ kind: 'good', expectedMicro: sum });
        expect(balance(movements, sum + 1_000_000n)).toEqual({ kind: 'differs', expectedMicro: sum });
      },
    ),
  );
});

test('a node that answers of an earlier height of the range is right', () => {
  const movements = [{ block: 199, micro: 7n }];
  expect(balance(movements, 50n, 198, 200)).toEqual({ kind: 'good', block: 198, expectedMicro: 50n });
  expect(balance(movements, 57n, 198, 200)).toEqual({ kind: 'good', block: 200, expectedMicro: 57n });
});

test('a back end that is further behind than a minute of blocks is not believed', () => {
  const movements = [{ block: 180, micro: 7n }];
  expect(balance(movements, 50n)).toEqual({ kind: 'differs', expectedMicro: 57n });
  expect(balance([{ block: 181, micro: 7n }], 50n)).toEqual({ kind: 'good', block: 180, expectedMicro: 50n });
});

test('a height before the opening is never compared', () => {
  expect(balance([], 50n, 90, 100)).toEqual({ kind: 'good', block: 100, expectedMicro: 50n });
});

test('an address cannot have held less than nothing before the ledger knew it', () => {
  const books = { opening, beforeMicro: 60n, movements: [] };
  const reading = { low: 200, high: 200, balanceMicro: 50n };
  expect(balanceBooks(books, reading)).toEqual({ kind: 'differs', expectedMicro: 60n });
  expect(balanceBooks({ ...books, beforeMicro: 50n }, reading)).toMatchObject({ kind: 'good' });
});
