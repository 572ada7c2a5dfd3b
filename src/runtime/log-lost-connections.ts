import type { Logger } from './log.ts';
import { createTally } from './log-throttle.ts';

/** Writes that a database connection was lost: a pool loses all of its own at once, and the same again at each try. */
export function logLostConnections(log: Pick<Logger, 'warn'>): (error: Error) => void {
  const lost = createTally(() => performance.now());
  return (error) => {
    const connections = lost.note(error.message);
    if (connections !== null) log.warn({ err: error, connections }, 'a database connection was lost');
  };
}
