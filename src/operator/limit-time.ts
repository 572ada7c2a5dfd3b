import { commandOf } from '../store/db/rows-of.ts';

/** Bounds each statement that follows in a transaction, so that a page is answered or refused soon, and holds up nobody else for long. */
export const limitTime = commandOf(
  'limit-time',
  `select set_config('statement_timeout', $1, true)`,
  (timeoutMs: number) => [String(timeoutMs)],
);
