import { expect, test } from 'vitest';
import { unixMs } from '../../core/domain/time.ts';
import { isQuiet, isTimeZone, localTime } from './quiet-hours.ts';

const at = (time: string) => unixMs(Date.parse(time));
const BERLIN = 'Europe/Berlin';

test.each([
  ['2026-09-01T19:59:00Z', false],
  ['2026-09-01T20:00:00Z', true],
  ['2026-09-01T23:30:00Z', true],
  ['2026-09-02T04:59:59Z', true],
  ['2026-09-02T05:00:00Z', false],
  // An hour later in UTC, because it is winter.
  ['2026-12-01T20:30:00Z', false],
  ['2026-12-02T05:30:00Z', true],
])('at %s the hours from 22:00 to 07:00 in Berlin are quiet: %s', (time, expected) => {
  expect(isQuiet({ quietFrom: 22 * 60, quietTo: 7 * 60, timeZone: BERLIN }, at(time))).toBe(expected);
});

test('hours within a day end with it, and without any nothing is quiet', () => {
  const noon = { quietFrom: 12 * 60, quietTo: 13 * 60, timeZone: 'UTC' };
  expect(['11:59', '12:00', '12:59', '13:00'].map((time) => isQuiet(noon, at(`2026-09-01T${time}:00Z`)))).toEqual([
    ...[false, true, true, false],
  ]);
  expect(isQuiet({ quietFrom: null, quietTo: null, timeZone: 'UTC' }, at('2026-09-01T12:00:00Z'))).toBe(false);
});

test('a day and its minute are those of the time zone', () => {
  expect(localTime(BERLIN, at('2026-09-01T22:05:00Z'))).toEqual({ day: '2026-09-02', minute: 5 });
  expect(localTime('UTC', at('2026-09-01T00:00:00Z'))).toEqual({ day: '2026-09-01', minute: 0 });
  expect([BERLIN, 'UTC', 'Mars/Olympus', ''].map(isTimeZone)).toEqual([true, true, false, false]);
});
