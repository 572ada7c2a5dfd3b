import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../money.ts';
import { readFee } from './read-fee.ts';

test.each([
  ['1', 1_000_000n],
  ['0', 0n],
  ['1.5', 1_500_000n],
  ['1,5', 1_500_000n],
  [' 0.000001 USDT ', 1n],
  ['1USDT', 1_000_000n],
  ['1  usdt', 1_000_000n],
  ['\u200e1.5\u200f', 1_500_000n],
  ['۱٫۵', 1_500_000n],
  ['１．５', 1_500_000n],
  ['１，５ ＵＳＤＴ', 1_500_000n],
  ['٢', 2_000_000n],
  ['999999.999999', 999_999_999_999n],
])('a fee typed as %j is %d millionths', (text, micro) => {
  expect(readFee(text)).toBe(micro);
});

test.each([
  '',
  'one',
  '-1',
  '+1',
  '1e3',
  '1.2345678',
  '1,000,5',
  '1.',
  '.5',
  '1000000',
  '1%',
  '1 5',
  '1usdt5',
  '1'.repeat(5000),
])('what is no fee is refused: %j', (text) => {
  expect(readFee(text)).toBeNull();
});

test('every amount that is written with a point is read back', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 999_999_999_999n }), (micro) => {
      expect(readFee(formatAmount(microUsdt(micro)))).toBe(micro);
    }),
  );
});

test('any text is borne', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      readFee(text);
    }),
  );
});
