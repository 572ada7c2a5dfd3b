import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readSearch } from './search.ts';

test.each([
  ['25', 25_000_000n, 25_009_999n],
  ['$25', 25_000_000n, 25_009_999n],
  ['25,00', 25_000_000n, 25_009_999n],
  ['25.0 USDT', 25_000_000n, 25_009_999n],
  ['２５．００', 25_000_000n, 25_009_999n],
  ['27.0079', 27_007_900n, 27_007_999n],
  ['27.007946', 27_007_946n, 27_007_946n],
  ['1,500', 1_500_000_000n, 1_500_009_999n],
  ['1,500.25', 1_500_250_000n, 1_500_259_999n],
  ['1.500,25', 1_500_250_000n, 1_500_259_999n],
  ["1'500.25 usdt", 1_500_250_000n, 1_500_259_999n],
])('%j means amounts from %d to %d', (typed, low, high) => {
  expect(readSearch(typed).amount).toEqual({ low, high });
});

test.each([
  ['#1001', '1001'],
  ['Order–1001', 'order-1001'],
  ['“Order−1001”', 'order-1001'],
  [' ORDER\u200b-1001\n', 'order-1001'],
])('%j is looked for as %j', (typed, word) => {
  expect(readSearch(typed)).toMatchObject({ word, spellings: expect.arrayContaining([word]) });
});

test.each(['0ca17a0d', '0ca17a0d…', '0CA17A0D…8ae', '0x0ca17a0d'])('%j is the start of a transaction', (typed) => {
  expect(readSearch(typed).txId).toEqual({ first: `0ca17a0d${'0'.repeat(56)}`, last: `0ca17a0d${'f'.repeat(56)}` });
});

test('any text is read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (typed) => {
      expect(readSearch(typed).spellings.length).toBeLessThanOrEqual(6);
    }),
  );
});
