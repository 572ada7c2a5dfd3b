import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AmountUse, addressNeed, byUrgency, forecastCapacity } from './capacity.ts';
import { microUsdt } from './money.ts';
import { countPayable, type Policy, payableRange } from './policy.ts';
import { DAY_MS, type UnixMs, unixMs } from './time.ts';

const NOW = unixMs(Date.UTC(2026, 8, 30));
const HOUR_MS = 3_600_000;
const ago = (ms: number) => unixMs(NOW - ms);

/** An amount that was in use long before 30 days ago. */
const use = (used7Days: bigint, used30Days: bigint, rest: Partial<AmountUse> = {}): AmountUse => ({
  used7Days,
  used30Days,
  firstUseAt: null,
  countedSince: ago(30 * DAY_MS),
  ...rest,
});
const forecast = (free: bigint, total: bigint, of: AmountUse) => forecastCapacity({ free, total }, of, NOW);

describe('the rate of use', () => {
  test('is what was used in 7 and in 30 days, by the day', () => {
    expect(forecast(800n, 900n, use(70n, 150n))).toMatchObject({ perDay7: 10, perDay30: 5 });
  });

  test('of an amount that was first used 2 days ago is that of 2 days', () => {
    const young = use(50n, 50n, { firstUseAt: ago(2 * DAY_MS) });
    expect(forecast(850n, 900n, young)).toMatchObject({ perDay7: 25, perDay30: 25, daysLeft: 34 });
  });

  test('of an amount that was first used 10 days ago is over 7 days and over 10', () => {
    expect(forecast(850n, 900n, use(7n, 50n, { firstUseAt: ago(10 * DAY_MS) }))).toMatchObject({
      perDay7: 1,
      perDay30: 5,
    });
  });

  test.each([0, 1, HOUR_MS, DAY_MS])('of an amount that was first used %i ms ago is over a day at least', (ms) => {
    expect(forecast(898n, 900n, use(2n, 2n, { firstUseAt: ago(ms) }))).toMatchObject({ perDay7: 2, daysLeft: 449 });
  });

  test('is over the time that was counted, where 7 days had too much to count', () => {
    const busy = use(100_000n, 100_000n, { countedSince: ago(6 * HOUR_MS) });
    expect(forecast(1_000_000n, 2_000_000n, busy)).toMatchObject({ perDay7: 400_000, perDay30: 400_000, daysLeft: 2 });
    // A first use inside that time was not the first: nothing is said of a day that was not counted.
    const young = { ...busy, firstUseAt: ago(HOUR_MS) };
    expect(forecast(1_000_000n, 2_000_000n, young).perDay7).toBe(400_000);
  });

  test('does not break on a first use that another clock puts into the future', () => {
    const early = use(1n, 1n, { firstUseAt: unixMs(NOW + HOUR_MS) as UnixMs });
    expect(forecast(899n, 900n, early)).toMatchObject({ perDay7: 1, daysLeft: 899 });
  });
});

describe('an alarm', () => {
  test('is not raised for an amount that four invoices in 30 days say nothing about, and is for five', () => {
    const first = { firstUseAt: ago(HOUR_MS) };
    expect(forecast(16n, 20n, use(4n, 4n, first))).toMatchObject({ daysLeft: 4, isLow: false });
    expect(forecast(16n, 20n, use(5n, 5n, first))).toMatchObject({ daysLeft: 3, isLow: true });
  });
});

describe('days left', () => {
  test('are those of the higher rate, rounded down', () => {
    expect(forecast(99n, 900n, use(70n, 90n))).toMatchObject({ daysLeft7: 9, daysLeft30: 33, daysLeft: 9 });
    expect(forecast(99n, 900n, use(7n, 300n))).toMatchObject({ daysLeft7: 99, daysLeft30: 9, daysLeft: 9 });
  });

  test('are unknown where nothing was used, and known by 30 days where only the last 7 were quiet', () => {
    expect(forecast(900n, 900n, use(0n, 0n))).toMatchObject({ daysLeft7: null, daysLeft30: null, daysLeft: null });
    expect(forecast(900n, 900n, use(0n, 30n))).toMatchObject({ daysLeft7: null, daysLeft30: 900, daysLeft: 900 });
  });

  test('never promise more than is free: used at that rate for so long, no more than that is gone', () => {
    fc.assert(
      fc.property(
        fc.bigInt(0n, 10n ** 9n),
        fc.bigInt(1n, 10n ** 7n),
        fc.integer({ min: 0, max: 40 * DAY_MS }),
        (free, used, ageMs) => {
          const { daysLeft7, perDay7 } = forecast(free, free + used, use(used, used, { firstUseAt: ago(ageMs) }));
          const days = daysLeft7 ?? Number.NaN;
          expect(days * perDay7).toBeLessThanOrEqual(Number(free) * (1 + 1e-9));
          expect((days + 1) * perDay7).toBeGreaterThan(Number(free) * (1 - 1e-9));
        },
      ),
    );
  });
});

describe('capacity is low', () => {
  test('below 20 % free, and not at 20 %', () => {
    expect(forecast(180n, 900n, use(0n, 1n))).toMatchObject({ isLow: false, freeShare: 0.2 });
    expect(forecast(179n, 900n, use(0n, 1n)).isLow).toBe(true);
  });

  test('below 14 days, and not at 14', () => {
    expect(forecast(700n, 900n, use(350n, 350n))).toMatchObject({ isLow: false, daysLeft: 14 });
    expect(forecast(699n, 900n, use(350n, 350n))).toMatchObject({ isLow: true, daysLeft: 13 });
  });

  test('where there is nothing at all', () => {
    expect(forecast(0n, 0n, use(0n, 0n))).toMatchObject({ isLow: true, freeShare: 0, daysLeft: null });
  });
});

test('what will be gone first comes first: low ones, then by days, then by what is free', () => {
  const gone = forecast(0n, 900n, use(7n, 30n));
  const soon = forecast(300n, 900n, use(300n, 300n));
  const scarce = forecast(90n, 900n, use(0n, 0n));
  const busy = forecast(800n, 900n, use(70n, 70n));
  const idle = forecast(900n, 900n, use(0n, 0n));
  expect([idle, busy, scarce, soon, gone].sort(byUrgency)).toEqual([gone, soon, scarce, busy, idle]);
  const fuller = forecast(700n, 900n, use(0n, 0n));
  expect([idle, fuller].sort(byUrgency)).toEqual([fuller, idle]);
  expect([fuller, idle].sort(byUrgency)).toEqual([fuller, idle]);
});

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
