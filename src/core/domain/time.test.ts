import { expect, test } from 'vitest';
import { toIso, unixMs } from './time.ts';

test('a time is a whole number of milliseconds, from 1970 on', () => {
  for (const value of [0, 1, Number.MAX_SAFE_INTEGER]) expect(unixMs(value)).toBe(value);
  for (const value of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER + 1]) {
    expect(() => unixMs(value)).toThrow(`not a time in milliseconds: ${value}`);
  }
});

test('it is written in UTC with milliseconds', () => {
  expect(toIso(unixMs(1_788_264_000_005))).toBe('2026-09-01T12:00:00.005Z');
});
