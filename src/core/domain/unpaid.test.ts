import { describe, expect, test } from 'vitest';
import { MINUTE_MS } from './time.ts';
import { DEFAULT_UNPAID_LIMITS, isUnderLimits, tightest, UNPAID_MS, type UnpaidLimits } from './unpaid.ts';

describe('the tightest limit', () => {
  const LIMITS = { maxUnpaid: 10, maxUnpaidPerMinute: 5 };

  test.each([
    [LIMITS, { unpaid: 6, unpaidLastMinute: 2 }, { rule: 'unpaid-per-minute', limit: 5, left: 3 }],
    [LIMITS, { unpaid: 9, unpaidLastMinute: 2 }, { rule: 'unpaid', limit: 10, left: 1 }],
    [
      { ...LIMITS, maxUnpaid: null },
      { unpaid: 99, unpaidLastMinute: 7 },
      { rule: 'unpaid-per-minute', limit: 5, left: -2 },
    ],
    [{ maxUnpaid: null, maxUnpaidPerMinute: null }, { unpaid: 99, unpaidLastMinute: 99 }, null],
  ])('is the one of which less is left: %j, %j', (limits, counts, expected) => {
    expect(tightest(limits, counts)).toEqual(expected);
  });
});

test('a flood is over when half of each limit is free again', () => {
  const limits = { maxUnpaid: 10, maxUnpaidPerMinute: 4 };
  expect(isUnderLimits(limits, { unpaid: 5, unpaidLastMinute: 2 })).toBe(true);
  expect(isUnderLimits(limits, { unpaid: 6, unpaidLastMinute: 2 })).toBe(false);
  expect(isUnderLimits(limits, { unpaid: 5, unpaidLastMinute: 3 })).toBe(false);
  expect(isUnderLimits({ maxUnpaid: null, maxUnpaidPerMinute: null }, { unpaid: 99, unpaidLastMinute: 99 })).toBe(true);
});

/** In how many minutes a flood that never ends has `count` invoices, none of them paid. */
function minutesUntil(count: number, { maxUnpaid, maxUnpaidPerMinute }: UnpaidLimits): number {
  const created: number[] = [];
  const within = (now: number, ms: number) => created.length - created.findIndex((at) => at > now - ms);
  for (let now = 0; ; now += 1000) {
    const isOpen = () =>
      created.length === 0 ||
      tightest(
        { maxUnpaid, maxUnpaidPerMinute },
        {
          unpaid: created.at(-1) === undefined || (created.at(-1) ?? 0) <= now - UNPAID_MS ? 0 : within(now, UNPAID_MS),
          unpaidLastMinute: (created.at(-1) ?? 0) <= now - MINUTE_MS ? 0 : within(now, MINUTE_MS),
        },
      )?.left !== 0;
    // As measured: 2,700 in 26 s.
    for (let i = 0; i < 104 && isOpen(); i++) created.push(now);
    if (created.length >= count) return now / MINUTE_MS;
  }
}

test('with the default limits a flood of one amount uses up an address in half an hour, and three in two hours', () => {
  const words = 900;
  expect(minutesUntil(words, DEFAULT_UNPAID_LIMITS)).toBeGreaterThanOrEqual(30);
  expect(minutesUntil(3 * words, DEFAULT_UNPAID_LIMITS)).toBeGreaterThanOrEqual(120);
  expect(minutesUntil(3 * words, { maxUnpaid: null, maxUnpaidPerMinute: null })).toBeLessThan(0.5);
});
