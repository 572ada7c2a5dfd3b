import { AppError } from './errors.ts';

/** What PostgreSQL is short of, by its SQLSTATE (class 53): it answers and does not do what it is asked. */
const SHORTAGES = {
  '53000': 'the database has run out of resources',
  '53100': 'the disk of the database is full',
  '53200': 'the database has run out of memory',
  '53300': 'the database accepts no more connections',
  '53400': 'the database has reached a limit of its configuration',
} as const;

/** Of a SQLSTATE: what the database is short of, in words that anybody may read; `null`: it is another failure. */
export function shortageOf(sqlState: unknown): string | null {
  if (typeof sqlState !== 'string' || !sqlState.startsWith('53')) return null;
  return Object.hasOwn(SHORTAGES, sqlState) ? SHORTAGES[sqlState as keyof typeof SHORTAGES] : SHORTAGES['53000'];
}

/** The same of an error `DATABASE_UNAVAILABLE`, or of any other. */
export function shortageBehind(error: unknown): string | null {
  if (!(error instanceof AppError) || error.code !== 'DATABASE_UNAVAILABLE') return null;
  return shortageOf((error.cause as { code?: unknown } | undefined)?.code);
}
