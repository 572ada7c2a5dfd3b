import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration, parseMoment } from './readers.ts';

const NOW = Date.parse('2026-09-01T12:00:00.000Z');

test('durations are whole minutes, hours or days', () => {
  expect(['5m', '30m', '2h', '90d'].map(parseDuration)).toEqual([300_000, 1_800_000, 7_200_000, 7_776_000_000]);
  for (const text of ['', '0m', '5', 'm', '1.5h', '-1d', '30 m', '05m', '1w', '9999999d', '1M']) {
    expect(parseDuration(text), text).toBeNull();
  }
});

test('a duration is written so that it is read back as the same', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 999_999 }), (minutes) => {
      expect(parseDuration(formatDuration(minutes * 60_000))).toBe(minutes * 60_000);
    }),
  );
});

test('a moment is a duration from now, a date at midnight UTC, or a time with its zone', () => {
  expect(parseMoment('90d', NOW)).toBe(NOW + 7_776_000_000);
  expect(parseMoment('2027-01-31', NOW)).toBe(Date.parse('2027-01-31T00:00:00.000Z'));
  expect(parseMoment('2027-01-31T10:30+02:00', NOW)).toBe(Date.parse('2027-01-31T08:30:00.000Z'));
  expect(parseMoment('2027-01-31T08:30:00Z', NOW)).toBe(Date.parse('2027-01-31T08:30:00.000Z'));
});

test('a time without a zone, a day that does not exist, and words are no moments', () => {
  for (const text of [
    '2027-01-31T10:00',
    '2027-02-30',
    '2027-13-01',
    '2027-01-31T25:00Z',
    'tomorrow',
    '31.1.2027',
    '',
  ]) {
    expect(parseMoment(text, NOW), text).toBeNull();
  }
});
