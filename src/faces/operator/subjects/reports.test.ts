import { expect, test } from 'vitest';
import { AppError } from '../../../core/domain/errors.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { readReportPeriod } from './reports.ts';

const NOW = unixMs(Date.parse('2028-03-05T23:59:59.999Z'));
const read = (from?: string, to?: string) => readReportPeriod({ from, to }, NOW);

test('a report is of this month up to today, or of the month of its last day', () => {
  expect(read()).toEqual({ from: '2028-03-01', to: '2028-03-05' });
  expect(read(undefined, '2028-02-29')).toEqual({ from: '2028-02-01', to: '2028-02-29' });
  expect(read('2028-01-31')).toEqual({ from: '2028-01-31', to: '2028-03-05' });
  expect(read('2028-03-05', '2028-03-05')).toEqual({ from: '2028-03-05', to: '2028-03-05' });
});

test('a report has 366 days at most, which is a leap year', () => {
  expect(read('2028-01-01', '2028-12-31')).toEqual({ from: '2028-01-01', to: '2028-12-31' });
  expect(() => read('2027-12-31', '2028-12-31')).toThrow(
    'from is 2027-12-31, 367 days up to to 2028-12-31: a report covers at most 366 days',
  );
});

test('days in the wrong order are refused', () => {
  expect(() => read('2028-03-06')).toThrow('from is 2028-03-06, after to 2028-03-05: use an earlier day');
});

test.each([
  '2027-02-29',
  '2028-13-01',
  '2028-3-1',
  '1969-12-31',
  '9999-12-31',
  '2028-03-01T00:00:00Z',
  '90d',
  '',
  '\u202e',
])('what is no day of UTC is refused: %j', (text) => {
  for (const field of ['from', 'to'] as const) {
    const wrong = () => readReportPeriod({ [field]: text }, NOW);
    expect(wrong).toThrow(AppError);
    expect(wrong).toThrow(new RegExp(`^${field} is .*: use a day in UTC, such as 2026-09-01$`));
  }
});
