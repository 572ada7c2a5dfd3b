import type { Logger } from './log.ts';

/** Limits messages to one per minute and subject. */
export type LogThrottle = {
  /** Returns whether a message is due. If it is, the message counts as sent. */
  isDue(subject: string): boolean;
  /** Call this if the message couldn't be sent, so that it becomes due again. */
  forget(subject: string): void;
};

const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** `now` returns milliseconds. If the clock is set back, messages aren't delayed. */
export function createLogThrottle(now: () => number): LogThrottle {
  const loggedAt = new Map<string, number>();
  return {
    isDue: (subject) => {
      const [at, lastAt] = [now(), loggedAt.get(subject)];
      if (lastAt !== undefined && at >= lastAt && at - lastAt < INTERVAL_MS) return false;
      if (loggedAt.size >= MAX_REMEMBERED) loggedAt.clear();
      loggedAt.set(subject, at);
      return true;
    },
    forget: (subject) => void loggedAt.delete(subject),
  };
}

/** Limits messages that contain a count. */
export type Tally = {
  /**
   * Counts one occurrence. If a message is due, returns the count since the last message, otherwise `null`. The first message is due
   * immediately, and further ones once a minute.
   */
  note(subject: string): number | null;
};

/**
 * `now` returns milliseconds. The next message includes all occurrences since the last one, but it's sent only when there's another
 * occurrence.
 */
export function createTally(now: () => number): Tally {
  const throttle = createLogThrottle(now);
  const counts = new Map<string, number>();
  return {
    note: (subject) => {
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
