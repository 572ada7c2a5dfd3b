import type { UnixMs } from '../../core/domain/time.ts';

/** Quiet hours last from one minute of the day until just before another. If the second is earlier, they span midnight. */
export type QuietHours = { quietFrom: number | null; quietTo: number | null; timeZone: string };

export function isQuiet({ quietFrom, quietTo, timeZone }: QuietHours, at: UnixMs): boolean {
  if (quietFrom === null || quietTo === null) return false;
  const { minute } = localTime(timeZone, at);
  return quietFrom < quietTo ? minute >= quietFrom && minute < quietTo : minute >= quietFrom || minute < quietTo;
}

/** Returns the day (`2026-09-01`) and the minute of the day in a time zone. */
export function localTime(timeZone: string, at: UnixMs): { day: string; minute: number } {
  const parts = new Map(
    formatterOf(timeZone)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  const [year, month, day] = [parts.get('year'), parts.get('month'), parts.get('day')];
  return { day: `${year}-${month}-${day}`, minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')) };
}

/** Whether a time zone with this name exists: `Europe/Berlin`, `UTC`. */
export function isTimeZone(name: string): boolean {
  try {
    formatterOf(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const whole = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const;
  return new Intl.DateTimeFormat('en-US', { ...whole, timeZone, hourCycle: 'h23' });
}
