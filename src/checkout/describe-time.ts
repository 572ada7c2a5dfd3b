import type { UnixMs } from '../domain/time.ts';

const MINUTE_MS = 60_000;
const UTC = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });

/** `21 Nov 2026, 03:17 UTC`, for readers without the script, which turns it into their own time. */
export function describeTime(iso: string): string {
  return `${UTC.format(new Date(iso))} UTC`;
}

/** `29 minutes`: rounded down, so that nobody is promised time that is not there. */
export function describeRemaining(untilIso: string, now: UnixMs): string {
  const minutes = Math.floor((Date.parse(untilIso) - now) / MINUTE_MS);
  if (minutes < 1) return 'Less than a minute';
  if (minutes < 120) return count(minutes, 'minute');
  if (minutes < 48 * 60) return count(Math.floor(minutes / 60), 'hour');
  return count(Math.floor(minutes / (24 * 60)), 'day');
}

function count(n: number, unit: string): string {
  return `${n} ${unit}${n === 1 ? '' : 's'}`;
}
