import fc from 'fast-check';
import { expect, test } from 'vitest';
import { unixMs } from '../domain/time.ts';
import { derivableAt, indexAt } from './derive-addresses.ts';

const START = Date.UTC(2026, 10, 1);
const END = Date.UTC(2059, 0, 1);

test('no index is used twice, however often and whatever backup is restored', () => {
  const restores = fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 5000 }),
      derive: fc.array(fc.integer({ min: 1, max: 3000 }), { maxLength: 4 }),
    }),
    { minLength: 2, maxLength: 20 },
  );
  fc.assert(
    fc.property(fc.integer({ min: START, max: END - 10 ** 9 }), restores, (start, lives) => {
      let time = start;
      let used = -1;
      for (const { afterMs, derive } of lives) {
        time += afterMs;
        // Each life knows nothing of the one before.
        let next = indexAt(unixMs(time));
        for (const count of derive) {
          const taken = Math.min(count, derivableAt(unixMs(time), next));
          if (taken > 0) {
            expect(next).toBeGreaterThan(used);
            next += taken;
            used = next - 1;
          }
          time += 700;
        }
      }
    }),
  );
});

test('so many addresses may be derived as indexes were never used, and none beyond', () => {
  const now = unixMs(START);
  expect(derivableAt(now, indexAt(now) - 10)).toBe(10);
  expect(derivableAt(now, indexAt(now))).toBe(0);
  expect(derivableAt(now, indexAt(now) + 10)).toBe(0);
});

test('an index fits its column until 2059, and is above what a ledger uses that was never restored', () => {
  expect(indexAt(unixMs(END))).toBeLessThan(2 ** 31 - 1);
  expect(indexAt(unixMs(Date.UTC(2100, 0, 1)))).toBe(2 ** 31 - 1);
  expect(indexAt(unixMs(START))).toBeGreaterThan(50_000_000);
});
