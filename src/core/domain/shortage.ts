import { isDatabaseUnavailable } from './errors.ts';

/** Resource shortages of PostgreSQL by SQLSTATE (class 53): the database responds, but refuses the statement. */
const SHORTAGES = {
  '53000': 'the database has run out of resources',
  '53100': 'the database disk is full',
  '53200': 'the database has run out of memory',
  '53300': 'the database accepts no more connections',
  '53400': 'the database has reached a configured limit',
} as const;

/** Returns the shortage that a SQLSTATE means, as text that anyone may see, or `null` if the SQLSTATE means something else. */
export function shortageOf(sqlState: unknown): string | null {
  if (typeof sqlState !== 'string' || !sqlState.startsWith('53')) return null;
  return Object.hasOwn(SHORTAGES, sqlState) ? SHORTAGES[sqlState as keyof typeof SHORTAGES] : SHORTAGES['53000'];
}

/**
 * Whether only the statement itself was too large: configuration_limit_exceeded, as when a report exceeds `temp_file_limit`. Other
 * statements still succeed, so invoices can be created.
 */
export function isOfStatementOnly(sqlState: unknown): boolean {
  return sqlState === '53400';
}

/** Returns the shortage that caused a `DATABASE_UNAVAILABLE` error, or `null` for any other error. */
export function shortageBehind(error: unknown): string | null {
  if (!isDatabaseUnavailable(error)) return null;
  return shortageOf((error.cause as { code?: unknown } | undefined)?.code);
}
