import { say } from '../../domain/message.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { clip } from './clip.ts';
import { parseDuration, parseMoment } from './duration.ts';
import { FieldError } from './field-error.ts';

const DAY_MS = 86_400_000;

/** The time between two days or moments; the day `to` belongs to it. Errors: `INVALID_ARGUMENT`. */
export function readPeriod({ from, to }: { from?: string | undefined; to?: string | undefined }) {
  const [start, end] = [readTime('from', from), readTime('to', to)];
  const until = end !== null && to?.includes('T') === false ? unixMs(end + DAY_MS) : end;
  if (start !== null && until !== null && start >= until) {
    throw new FieldError(
      'from',
      say`${clip(from ?? '')} is not before ${{ field: 'to' }} ${clip(to ?? '')}: give an earlier time`,
    );
  }
  return { from: start, until };
}

function readTime(field: string, text: string | undefined): UnixMs | null {
  if (text === undefined) return null;
  const time = parseDuration(text) === null ? parseMoment(text, 0) : null;
  if (time !== null && time >= 0) return unixMs(time);
  throw new FieldError(
    field,
    `is ${clip(text)}: give a day (2026-09-01, UTC) or a time with its zone (2026-09-01T12:00:00Z)`,
  );
}
