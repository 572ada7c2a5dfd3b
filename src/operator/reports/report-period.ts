import { DAY_MS } from '../../domain/capacity.ts';
import { say } from '../../domain/message.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { clip } from '../input/clip.ts';
import { parseMoment } from '../input/duration.ts';
import { FieldError } from '../input/field-error.ts';

/** The first day of a report and its last one, in UTC: `2026-11-01`. */
export type ReportPeriod = { from: string; to: string };

/** A leap year, so that every year is one request. */
const MAX_DAYS = 366;
/** Up to the year 2999. */
const DAY = /^[12]\d{3}-\d\d-\d\d$/;

/** The days of a report: this month up to today, unless they are said. Errors: `INVALID_ARGUMENT`. */
export function readReportPeriod(
  given: { from?: string | undefined; to?: string | undefined },
  now: UnixMs,
): ReportPeriod {
  const to = readDay('to', given.to) ?? dayOf(now);
  const from = readDay('from', given.from) ?? `${to.slice(0, 8)}01`;
  const days = (startOf(to) - startOf(from)) / DAY_MS + 1;
  if (days < 1)
    throw new FieldError('from', say`is ${from}, after ${{ field: 'to' }} ${to}: nothing lies between them`);
  if (days > MAX_DAYS) {
    throw new FieldError(
      'from',
      say`is ${from}, ${days} days up to ${{ field: 'to' }} ${to}: a report has ${MAX_DAYS} days at most`,
    );
  }
  return { from, to };
}

function readDay(field: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (DAY.test(text) && (parseMoment(text, 0) ?? -1) >= 0) return text;
  throw new FieldError(field, `is ${clip(text)}: write a day of UTC, such as 2026-09-01`);
}

export function dayOf(time: UnixMs): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** When a day begins. */
export function startOf(day: string): UnixMs {
  return unixMs(Date.parse(day));
}
