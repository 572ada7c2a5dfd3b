import type { Logger } from './log.ts';

export type LogThrottle = ReturnType<typeof createLogThrottle>;

const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** Limits messages to one per minute and subject. `now` returns milliseconds. If the clock is set back, messages aren't delayed. */
export function createLogThrottle(now: () => number) {
  const loggedAt = new Map<string, number>();
  return {
    /** Returns whether a message is due. If it is, the message counts as sent. */
    isDue: (subject: string) => {
      const [at, lastAt] = [now(), loggedAt.get(subject)];
      if (lastAt !== undefined && at >= lastAt && at - lastAt < INTERVAL_MS) return false;
      if (loggedAt.size >= MAX_REMEMBERED) loggedAt.clear();
      loggedAt.set(subject, at);
      return true;
    },
    /** Call this if the message couldn't be sent, so that it becomes due again. */
    forget: (subject: string) => void loggedAt.delete(subject),
  };
}

export type Tally = ReturnType<typeof createTally>;

/**
 * Limits messages that contain a count. `now` returns milliseconds. The next message includes all occurrences since the last one, but it's
 * sent only when there's another occurrence.
 */
export function createTally(now: () => number) {
  const throttle = createLogThrottle(now);
  const counts = new Map<string, number>();
  return {
    /**
     * Counts one occurrence. If a message is due, returns the count since the last message, otherwise `null`. The first message is due
     * immediately, and further ones once a minute.
     */
    note: (subject: string) => {
      const count = (counts.get(subject) ?? 0) + 1;
      if (counts.size >= MAX_REMEMBERED) counts.clear();
      const isDue = throttle.isDue(subject);
      counts.set(subject, isDue ? 0 : count);
      return isDue ? count : null;
    },
  };
}

/**
 * Logs lost database connections. Occurrences are counted, because a pool loses all of its connections at the same time, and again at each
 * retry.
 */
export function logLostConnections(log: Pick<Logger, 'warn'>): (error: Error) => void {
  const lost = createTally(() => performance.now());
  return (error) => {
    const connections = lost.note(error.message);
    if (connections !== null) log.warn({ err: error, connections }, 'a database connection was lost');
  };
}
