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

/** `null` for a statement that was given up; a database that is away fails the rest too. */
export function ifTooSlow(error: unknown): null {
  const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
  if (error instanceof AppError && error.code === 'DATABASE_UNAVAILABLE' && code === '57014') return null;
  throw error;
}
