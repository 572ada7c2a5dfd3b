import { expect, test } from 'vitest';
import { suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { pointMisplaced, requestedAmount, roundedOrTruncated } from './rounding-errors.ts';

const INVOICE = suspectOf(25_000_000n, 25_000_137n);
const ROUND = suspectOf(25_000_000n, 25_000_000n);

test('the requested amount is one without its tail', () => {
  expect(requestedAmount(INVOICE, 25_000_000n)).toEqual([
    {
      code: 'REQUESTED_AMOUNT',
      weight: 0.22,
      evidence: { requestedAmount: '25.000000', payableAmount: '25.000137' },
      explanation:
        '25.000000 arrived: this is the requested amount of invoice order-1, without the 0.000137 that makes its payable amount 25.000137',
    },
  ]);
  expect(requestedAmount(INVOICE, 25_000_001n)).toEqual([]);
  expect(requestedAmount(ROUND, 25_000_000n)).toEqual([]);
});

/** Of those who lose digits: to the nearest, cut off, always up; and how many keep 0 … 5 decimals. */
const [NEAREST, CUT_OFF, UP] = [0.5, 0.35, 0.15];
const KEPT = [0.25, 0.1, 0.3, 0.1, 0.15, 0.1] as const;

test.each([
  [25_123_457n, 25_123_460n, 'ROUNDED', 5, '0.000003', KEPT[5] * (NEAREST + UP), 'rounded up to 5 decimals'],
  [25_123_455n, 25_123_460n, 'ROUNDED', 5, '0.000005', KEPT[5] * (NEAREST + UP), 'rounded up to 5 decimals'],
  [
    25_123_453n,
    25_123_450n,
    'ROUNDED',
    5,
    '-0.000003',
    KEPT[5] * (NEAREST + CUT_OFF),
    'rounded or truncated to 5 decimals',
  ],
  [25_123_457n, 25_123_450n, 'TRUNCATED', 5, '-0.000007', KEPT[5] * CUT_OFF, 'truncated to 5 decimals'],
  [25_123_453n, 25_123_460n, 'ROUNDED', 5, '0.000007', KEPT[5] * UP, 'rounded up to 5 decimals'],
  [25_123_457n, 25_123_500n, 'ROUNDED', 4, '0.000043', KEPT[4] * (NEAREST + UP), 'rounded up to 4 decimals'],
  [
    25_123_457n,
    25_123_000n,
    'ROUNDED',
    3,
    '-0.000457',
    KEPT[3] * (NEAREST + CUT_OFF),
    'rounded or truncated to 3 decimals',
  ],
  [
    25_123_457n,
    25_120_000n,
    'ROUNDED',
    2,
    '-0.003457',
    KEPT[2] * (NEAREST + CUT_OFF),
    'rounded or truncated to 2 decimals',
  ],
  [
    25_123_457n,
    25_100_000n,
    'ROUNDED',
    1,
    '-0.023457',
    KEPT[1] * (NEAREST + CUT_OFF),
    'rounded or truncated to 1 decimal',
  ],
  [25_623_457n, 26_000_000n, 'ROUNDED', 0, '0.376543', KEPT[0] * (NEAREST + UP), 'rounded up to whole USDT'],
  [25_623_457n, 25_000_000n, 'TRUNCATED', 0, '-0.623457', KEPT[0] * CUT_OFF, 'truncated to whole USDT'],
] as const)('%i paid as %i is %s to %i decimals', (payable, paid, code, decimals, difference, weight, says) => {
  const [slip, ...more] = roundedOrTruncated(suspectOf(20_000_000n, payable), paid);
  expect(more).toEqual([]);
  expect(slip).toMatchObject({ code, evidence: { decimals, difference } });
  expect(slip?.weight).toBeCloseTo(0.2 * weight, 12);
  expect(slip?.explanation).toContain(`invoice order-1's 25.${String(payable).slice(2)} ${says}`);
  expect(slip?.explanation.endsWith(says)).toBe(true);
  expect(slip).not.toHaveProperty('atMost');
});

test('what is round at several places is the likeliest of them, with the weight of all', () => {
  const [slip] = roundedOrTruncated(suspectOf(20_000_000n, 25_099_997n), 25_100_000n);
  expect(slip).toMatchObject({ code: 'ROUNDED', evidence: { decimals: 2, difference: '0.000003' } });
  // To 1, 2, 3, 4 or 5 decimals it is the same.
  expect(slip?.weight).toBeCloseTo(0.2 * (0.1 + 0.3 + 0.1 + 0.15 + 0.1) * (NEAREST + UP), 12);
});

test('a whole figure above the amount that is not the nearest may be chosen for another reason', () => {
  const [slip] = roundedOrTruncated(suspectOf(20_000_000n, 25_123_457n), 26_000_000n);
  expect(slip).toMatchObject({ code: 'ROUNDED', atMost: 'medium', evidence: { decimals: 0, difference: '0.876543' } });
  expect(slip?.weight).toBeCloseTo(0.2 * KEPT[0] * UP, 12);
});

test.each([
  ['the payable amount', 25_100_000n, 25_100_000n],
  ['the requested amount', 25_100_003n, 25_000_000n],
  ['1 USDT more', 25_000_000n, 26_000_000n],
  ['nothing', 137n, 0n],
  ['one more of a last decimal', 25_100_000n, 25_200_000n],
  ['an amount that is not round', 25_000_137n, 25_000_141n],
  ['a round amount too far away for its place', 25_000_137n, 25_000_160n],
])('%s is neither rounded nor cut off', (_what, payable, paid) => {
  expect(roundedOrTruncated(suspectOf(25_000_000n, payable), paid)).toEqual([]);
});

test.each([
  [1, 250_001_370n, 'with the decimal point 1 place to the right', 1 / 3],
  [2, 2_500_013_700n, 'with the decimal point 2 places to the right', 1 / 4],
  [5, 2_500_013_700_000n, 'with the decimal point 5 places to the right', 1 / 7],
  [6, 25_000_137_000_000n, 'with the decimal point 6 places to the right', 1 / 3],
  [-1, 2_500_013n, 'with the decimal point 1 place to the left', 1 / 3],
  [-3, 25_000n, 'with the decimal point 3 places to the left', 1 / 5],
] as const)('the point %i places off', (places, paid, says, weight) => {
  const [slip] = pointMisplaced(INVOICE, paid);
  expect(slip).toMatchObject({ code: 'POINT_MISPLACED', evidence: { places } });
  expect(slip?.weight).toBeCloseTo(0.02 * weight, 12);
  expect(slip?.explanation).toMatch(/^[0-9.]+ arrived: invoice order-1's 25\.000137 with/);
  expect(slip?.explanation.endsWith(says)).toBe(true);
});

test.each([25_000_137n, 250_001_371n, 250_001_370_000_000n, 2_500n, 0n])('%i is no point misplaced', (paid) => {
  expect(pointMisplaced(INVOICE, paid)).toEqual([]);
});

test('of an amount with few digits nothing is left by a shift to the left', () => {
  expect(pointMisplaced(suspectOf(1n, 9n), 0n)).toEqual([]);
});
