import { AppError } from '../domain/errors.ts';
import { answerOf } from '../store/db/rows-of.ts';

/** Bounds each statement that follows in a transaction, so that a page is answered or refused soon, and holds up nobody else for long. */
export const limitTime = answerOf(
  'limit-time',
  { timeout: 'text' },
  `select set_config('statement_timeout', $1, true) as timeout`,
  (timeoutMs: number) => [String(timeoutMs)],
  () => undefined,
);

/** Whether an error is that of a statement that took longer than it was allowed to. */
export function isGivenUp(error: unknown): boolean {
  if (!(error instanceof AppError) || error.code !== 'DATABASE_UNAVAILABLE') return false;
  return (error.cause as { code?: unknown } | undefined)?.code === QUERY_CANCELED;
}

/** SQLSTATE. */
const QUERY_CANCELED = '57014';

/** `null` for a statement that was given up; a database that is away fails the rest too. */
export function ifTooSlow(error: unknown): null {
  if (isGivenUp(error)) return null;
  throw error;
}
