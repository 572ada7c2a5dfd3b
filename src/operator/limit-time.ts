import { answerOf } from '../store/db/rows-of.ts';

/** Bounds each statement that follows in a transaction, so that a page is answered or refused soon, and holds up nobody else for long. */
export const limitTime = answerOf(
  'limit-time',
  { timeout: 'text' },
  `select set_config('statement_timeout', $1, true) as timeout`,
  (timeoutMs: number) => [String(timeoutMs)],
  () => undefined,
);
