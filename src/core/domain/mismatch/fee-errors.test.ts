import fc from 'fast-check';
import { expect, test } from 'vitest';
import { suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { beforeShares, COMMON_FEES, FIXED_FEES, feeDeducted, overpaid } from './fee-errors.ts';

const INVOICE = suspectOf(25_000_000n, 25_000_137n);
const ROUND = suspectOf(25_000_000n, 25_000_000n);
/** How often a fee is taken, and a share of 0.1, 0.2, 0.25, 0.5, 1, 1.5, 2 or 3 %. */
const PRIOR = 0.25;
const SHARES = [
  [10n, 0.04, '0.1 %'],
  [20n, 0.01, '0.2 %'],
  [25n, 0.01, '0.25 %'],
  [50n, 0.04, '0.5 %'],
  [100n, 0.05, '1 %'],
  [150n, 0.01, '1.5 %'],
  [200n, 0.01, '2 %'],
  [300n, 0.01, '3 %'],
] as const;

test.each([
  ['0.5', 24_500_137n, 0.08],
  ['0.8', 24_200_137n, 0.08],
  ['1', 24_000_137n, 0.35],
  ['1.5', 23_500_137n, 0.08],
  ['2', 23_000_137n, 0.08],
  ['3', 22_000_137n, 0.05],
  ['5', 20_000_137n, 0.05],
])('a fee of %s is one that exchanges often take', (fee, paid, weight) => {
  const exact = `${Number(fee).toFixed(6)}`;
  const arrived = `${(Number(paid) / 1e6).toFixed(6)}`;
  expect(feeDeducted(INVOICE, paid)).toEqual([
    {
      code: 'FEE_DEDUCTED',
      weight: PRIOR * weight,
      evidence: { fee: exact, paidFrom: '25.000137' },
      explanation: `${arrived} arrived: ${exact} less than invoice order-1's 25.000137; exchanges often deduct a withdrawal fee of ${fee} USDT from the amount`,
    },
  ]);
});

test.each([
  ['0.01', 24_990_137n, 0.03 / 100],
  ['0.37', 24_630_137n, 0.03 / 100],
  ['0.1', 24_900_137n, 0.1 / 100],
  ['1.1', 23_900_137n, 0.1 / 100],
  ['10', 15_000_137n, 0.1 / 100],
])('a fee of %s may have been taken', (fee, paid, weight) => {
  const [slip, ...more] = feeDeducted(INVOICE, paid);
  expect(more).toEqual([]);
  expect(slip).toMatchObject({ code: 'FEE_DEDUCTED', weight: PRIOR * weight });
  expect(slip?.explanation).toMatch(
    new RegExp(`; an exchange may have deducted a fee of ${fee.replace('.', '\\.')} USDT from the amount$`),
  );
});

test.each([
  ['nothing', 0n],
  ['a cent more than 1 USDT', 1_010_000n],
  ['a tenth more than 10 USDT', 10_100_000n],
  ['half a cent', 5_000n],
  ['more than was asked for', -1_000_000n],
])('%s is no fee, and no surplus either', (_what, difference) => {
  expect(feeDeducted(INVOICE, 25_000_137n - difference)).toEqual([]);
  if (difference >= 0n) expect(overpaid(INVOICE, 25_000_137n + difference)).toEqual([]);
});

test.each(SHARES)(
  'a share of %i in 10,000 is deducted to the micro-USDT, rounded either way',
  (share, weight, percent) => {
    const invoice = suspectOf(7n, 23_456_789n);
    const left = (23_456_789n * (10_000n - share)) / 10_000n;
    for (const paid of [left, left + 1n]) {
      const fee = (Number(23_456_789n - paid) / 1e6).toFixed(6);
      expect(feeDeducted(invoice, paid)).toEqual([
        {
          code: 'FEE_DEDUCTED',
          weight: (PRIOR * weight) / 2,
          evidence: { fee, feePercent: percent, paidFrom: '23.456789' },
          explanation: `${(Number(paid) / 1e6).toFixed(6)} arrived: ${percent} less than invoice order-1's 23.456789; a service may have deducted a fee of ${percent}`,
        },
      ]);
    }
    for (const paid of [left - 1n, left + 2n]) expect(feeDeducted(invoice, paid)).toEqual([]);
  },
);

test('a fee may also have been deducted from the requested amount, which is less sure', () => {
  expect(feeDeducted(INVOICE, 24_000_000n)).toEqual([
    {
      code: 'FEE_DEDUCTED',
      weight: PRIOR * 0.35 * 0.3,
      evidence: { fee: '1.000000', paidFrom: '25.000000' },
      explanation:
        '24.000000 arrived: 1 USDT less than the requested 25 of invoice order-1; the payer may have sent the requested amount, and an exchange may have deducted its fee from it',
      atMost: 'medium',
    },
  ]);
  expect(feeDeducted(INVOICE, 24_875_000n)).toEqual([
    {
      code: 'FEE_DEDUCTED',
      weight: ((PRIOR * 0.04) / 2) * 0.3,
      evidence: { fee: '0.125000', feePercent: '0.5 %', paidFrom: '25.000000' },
      explanation:
        '24.875000 arrived: 0.5 % less than the requested 25 of invoice order-1; a service may have deducted a fee of 0.5 %',
      atMost: 'medium',
    },
  ]);
  // A tenth is no fee that is looked for there.
  expect(feeDeducted(INVOICE, 23_900_000n)).toEqual([]);
});

test('where both amounts are the same it is said once', () => {
  expect(feeDeducted(ROUND, 24_000_000n)).toHaveLength(1);
  expect(feeDeducted(ROUND, 24_875_000n)).toHaveLength(1);
});

test('a round figure more may be a fee that was not deducted', () => {
  expect(overpaid(INVOICE, 26_000_137n)).toEqual([
    {
      code: 'OVERPAID',
      weight: 0.05 * 0.35,
      evidence: { surplus: '1.000000' },
      explanation:
        "26.000137 arrived: 1 USDT more than invoice order-1's 25.000137; the payer may have added a fee that was not deducted",
    },
  ]);
  expect(overpaid(INVOICE, 25_370_137n)).toMatchObject([{ weight: 0.05 * (0.03 / 100) }]);
  expect(overpaid(INVOICE, 24_000_137n)).toEqual([]);
});

test('the least that an exchange sends may be meant for an invoice of less', () => {
  expect(overpaid(INVOICE, 50_000_000n)).toEqual([
    {
      code: 'OVERPAID',
      weight: 0.05 * 0.1,
      evidence: { surplus: '24.999863', minimum: '50.000000' },
      explanation:
        "50.000000 arrived: the smallest amount that some exchanges send, and more than invoice order-1's 25.000137",
      atMost: 'low',
    },
  ]);
  // Below it an exchange would have sent what was asked.
  expect(overpaid(INVOICE, 100_000_000n)).toEqual([]);
  expect(overpaid(INVOICE, 20_000_000n)).toEqual([]);
});

test('every fixed fee that is found is among those that are looked for, each once', () => {
  // So large that no fee is a share of it.
  const large = suspectOf(5_000_000_000_000n, 5_000_000_000_000n);
  const found = Array.from({ length: 1_100 }, (_, index) => BigInt(index + 1) * 10_000n).filter(
    (fee) => feeDeducted(large, large.payableMicro - fee).length > 0,
  );
  expect([...FIXED_FEES].sort((a, b) => Number(a - b))).toEqual(found);
  expect(found).toHaveLength(190);
  expect([...COMMON_FEES].sort((a, b) => Number(a - b))).toEqual(
    [0.5, 0.8, 1, 1.5, 2, 3, 5].map((fee) => BigInt(fee * 1e6)),
  );
});

test('from what is left of an amount after a share, that amount is looked for, and little beside it', () => {
  fc.assert(
    fc.property(fc.bigInt(1n, 10n ** 13n), fc.constantFrom(...SHARES.keys()), fc.nat(1), (base, index, up) => {
      const share = SHARES[index]?.[0] ?? 0n;
      const left = (base * (10_000n - share)) / 10_000n + BigInt(up);
      const ranges = beforeShares(left);
      expect(ranges).toHaveLength(SHARES.length);
      const { low, high } = ranges[index] ?? { low: 0n, high: 0n };
      expect(low <= base && base <= high).toBe(true);
      expect(high - low).toBeLessThanOrEqual(5n);
    }),
  );
});
