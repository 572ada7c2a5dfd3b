/** For what is told once a minute of each subject, however often it happens. */
export type LogThrottle = {
  /** Whether it is due; then it counts as told. */
  isDue(subject: string): boolean;
  /** It could not be told, so it is due again. */
  forget(subject: string): void;
};

const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** `now` in milliseconds. A clock that was put back puts nothing off. */
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

/** For what is told with how often it happened. */
export type Tally = {
  /** Counts once more. How often it happened since it was told last, if it is due: at once, and then once a minute; else `null`. */
  note(subject: string): number | null;
};

/** `now` as above. What happened after the last telling is told with the next time that it happens. */
export function createTally(now: () => number): Tally {
  const seldom = createLogThrottle(now);
  const counts = new Map<string, number>();
  return {
    note: (subject) => {
      const count = (counts.get(subject) ?? 0) + 1;
      if (counts.size >= MAX_REMEMBERED) counts.clear();
      const isDue = seldom.isDue(subject);
      counts.set(subject, isDue ? 0 : count);
      return isDue ? count : null;
    },
  };
}
