import { setTimeout as delay } from 'node:timers/promises';
import { type AppError, isDatabaseUnavailable } from '../core/domain/errors.ts';
import type { Logger } from '../core/runtime/log.ts';

/** How long a start waits for a database that is also starting. */
const DATABASE_WAIT_MS = 10_000;
/** How long a start waits for a locked table. Some backup tools and `vacuum full` lock tables for a while. */
const LOCK_WAIT_MS = 60_000;
const RETRY_MS = 1000;

/** Runs one step of the startup and retries it while the database doesn't answer. Throws the step's errors. */
export async function retryUntilReady<Result>(log: Logger, step: () => Promise<Result>): Promise<Result> {
  const begun = performance.now();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      if (performance.now() - begun > (isLocked(error) ? LOCK_WAIT_MS : DATABASE_WAIT_MS)) throw error;
      log.warn({ reason: error.message }, 'the database is not responding yet');
      await delay(RETRY_MS);
    }
  }
}

/** PostgreSQL's `lock_not_available`: a statement exceeded its lock timeout. */
function isLocked({ cause }: AppError): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === '55P03';
}
