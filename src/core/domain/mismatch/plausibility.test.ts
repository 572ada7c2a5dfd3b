import { expect, test } from 'vitest';
import { CREATED_AT, suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { unixMs } from '../time.ts';
import { plausibility } from './plausibility.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How plausible an invoice is to a transfer so long after it was made. */
const after = (ms: number, expiresMs = 30 * MINUTE_MS) =>
  plausibility(
    suspectOf(25_000_000n, 25_000_137n, { expiresAt: unixMs(CREATED_AT + expiresMs) }),
    unixMs(CREATED_AT + ms),
  );
/** The same of one that was paid so long before the transfer. */
const paidBefore = (ms: number) => {
  const at = unixMs(CREATED_AT + 10 * 24 * HOUR_MS);
  return plausibility(suspectOf(1n, 1n, { paid: { at: unixMs(at - ms), from: 'TPayer' } }), at);
};

test('an invoice that a transfer came before cannot be meant', () => {
  expect([-3001, -3000, -2999, 0].map((ms) => after(ms))).toEqual([0, 0, 1, 1]);
});

test('most pay at once: an open invoice is less plausible after 3 hours, and less again after 2 days', () => {
  const open = (ms: number) => after(ms, 1000 * HOUR_MS);
  expect([3 * HOUR_MS - 1, 3 * HOUR_MS, 48 * HOUR_MS - 1, 48 * HOUR_MS].map(open)).toEqual([1, 0.6, 0.6, 0.3]);
});

test('one that has expired is less plausible the longer it has', () => {
  const overdue = (ms: number) => after(30 * MINUTE_MS + ms);
  expect([0, 1, 2 * HOUR_MS - 1, 2 * HOUR_MS, 48 * HOUR_MS - 1, 48 * HOUR_MS].map(overdue)).toEqual([
    1, 0.4, 0.4, 0.1, 0.1, 0.01,
  ]);
});

test('one that was paid before is hardly meant, and after a day even less', () => {
  expect([0, 24 * HOUR_MS - 1, 24 * HOUR_MS].map(paidBefore)).toEqual([0.03, 0.03, 0.003]);
  // Paid since, with something else, it was open when this transfer came; but it had expired nine days before.
  expect(paidBefore(-1)).toBe(0.01);
});
