import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressNeed } from './address-need.ts';
import { microUsdt } from './money.ts';
import { countPayable, type Policy, payableRange } from './policy.ts';

const tail = { policy: 'tail', maxSurchargeMicro: 10_000n } as const;

test('100 orders a day of one price use up three addresses in 27 days', () => {
  expect(3 * addressNeed({ perDay: 100, prices: 1 }, tail).daysOfOne).toBe(27);
});

test('under the policy exact each order of an amount takes an address', () => {
  const rule = { ...tail, policy: 'exact' } as const;
  expect(addressNeed({ perDay: 60, prices: 3 }, rule)).toEqual({ daysOfOne: 0.05, for90Days: 1800, for365Days: 7300 });
});

test('even a shop that sells hardly anything needs one address', () => {
  const need = addressNeed({ perDay: 1, prices: 1_000_000 }, tail);
  expect([need.for90Days, need.for365Days]).toEqual([1, 1]);
});

test('the addresses that are advised hold what is expected of an amount, and one less would not', () => {
  const shops = fc.record({
    perDay: fc.integer({ min: 1, max: 1_000_000 }),
    prices: fc.integer({ min: 1, max: 1000 }),
    policy: fc.constantFrom<Policy>('tail', 'tail-4', 'tail-3', 'exact'),
    maxSurchargeMicro: fc.bigInt({ min: 100_000n, max: 1_000_000n }),
  });
  fc.assert(
    fc.property(shops, ({ perDay, prices, ...rule }) => {
      const { for90Days } = addressNeed({ perDay, prices }, rule);
      const ofOne = countPayable(rule.policy, payableRange(rule, microUsdt(25_000_000n)));
      const wanted = BigInt(perDay) * 90n;
      const held = (addresses: number) => BigInt(addresses) * ofOne * BigInt(prices);
      expect(held(for90Days)).toBeGreaterThanOrEqual(wanted);
      if (for90Days > 1) expect(held(for90Days - 1)).toBeLessThan(wanted);
    }),
  );
});
