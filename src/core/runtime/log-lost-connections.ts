import type { Logger } from './log.ts';
import { createTally } from './log-throttle.ts';

/**
 * Logs lost database connections. It counts them, because a pool loses all of its connections at the same time, and again at each retry.
 */
export function logLostConnections(log: Pick<Logger, 'warn'>): (error: Error) => void {
  const lost = createTally(() => performance.now());
  return (error) => {
    const connections = lost.note(error.message);
    if (connections !== null) log.warn({ err: error, connections }, 'a database connection was lost');
  };
}
