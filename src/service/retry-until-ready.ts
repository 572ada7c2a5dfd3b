import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../domain/errors.ts';
import type { Logger } from '../runtime/log.ts';

/** How long a start waits for a database that starts at the same time. */
const DATABASE_WAIT_MS = 10_000;
/**
 * How long a start waits for a locked table, as a backup of some tools or a `vacuum full` locks it: the service is well when that is over.
 */
const LOCK_WAIT_MS = 60_000;
const RETRY_MS = 1000;

/** Does one step of a start, and repeats it while the database does not answer yet. Errors: those of the step. */
export async function retryUntilReady<Result>(log: Logger, step: () => Promise<Result>): Promise<Result> {
  const begun = performance.now();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'DATABASE_UNAVAILABLE') throw error;
      if (performance.now() - begun > (isLocked(error) ? LOCK_WAIT_MS : DATABASE_WAIT_MS)) throw error;
      log.warn({ reason: error.message }, 'the database does not answer yet');
      await delay(RETRY_MS);
    }
  }
}

/** PostgreSQL's `lock_not_available`: a statement waited longer for a lock than it may. */
function isLocked({ cause }: AppError): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === '55P03';
}
