import { isDatabaseUnavailable } from '../../core/domain/errors.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';

/**
 * Limits the time of each following statement in a transaction. So a page soon gets a result or an error, and doesn't block other pages for
 * long.
 */
export const limitTime = answerOf(
  'limit-time',
  { timeout: 'text' },
  `select set_config('statement_timeout', $1, true) as timeout`,
  (timeoutMs: number) => [String(timeoutMs)],
  () => undefined,
);

/** Whether a statement was cancelled because it exceeded its time limit. */
export function isGivenUp(error: unknown): boolean {
  if (!isDatabaseUnavailable(error)) return false;
  return (error.cause as { code?: unknown } | undefined)?.code === QUERY_CANCELED;
}

const QUERY_CANCELED = '57014';

/**
 * Returns `null` for a statement that exceeded its time limit. Other errors are rethrown, because if the database is unreachable, the rest
 * of the page can't be read either.
 */
export function ifTooSlow(error: unknown): null {
  if (isGivenUp(error)) return null;
  throw error;
}
