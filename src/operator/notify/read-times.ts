import { isTimeZone } from '../../notify/quiet-hours.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';

export type ChannelTimes = {
  quietFrom: number | null;
  quietTo: number | null;
  summaryAt: number | null;
  timeZone: string;
};

/** Reads quiet hours (`22:00-07:00`) and the minute of the daily summary (`08:00`), in a time zone. Errors: `INVALID_ARGUMENT`. */
export function readTimes({
  quiet,
  summary,
  timeZone = 'UTC',
}: {
  quiet: string | undefined;
  summary: string | undefined;
  timeZone: string | undefined;
}): ChannelTimes {
  if (!isTimeZone(timeZone)) {
    throw new FieldError(
      'timeZone',
      `has ${clip(timeZone)}, which is no time zone: write one such as Europe/Berlin, or UTC`,
    );
  }
  const [from, to, ...rest] = quiet?.split('-') ?? [];
  const hours = { quietFrom: minuteOf(from), quietTo: minuteOf(to) };
  const isWhole = hours.quietFrom !== null && hours.quietTo !== null && rest.length === 0;
  if (quiet !== undefined && (!isWhole || hours.quietFrom === hours.quietTo)) {
    throw new FieldError('quiet', `has ${clip(quiet)}: write two different times, such as 22:00-07:00`);
  }
  const summaryAt = minuteOf(summary);
  if (summary !== undefined && summaryAt === null) {
    throw new FieldError('summary', `has ${clip(summary)}: write a time of the day, such as 08:00`);
  }
  return { ...hours, summaryAt, timeZone };
}

function minuteOf(text: string | undefined): number | null {
  const [, hour, minute] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text?.trim() ?? '') ?? [];
  return hour === undefined ? null : Number(hour) * 60 + Number(minute);
}

/** `08:00` */
export function timeOfMinute(minute: number): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${two(Math.floor(minute / 60))}:${two(minute % 60)}`;
}
