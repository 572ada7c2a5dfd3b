/** For what is told once a minute of each subject, however often it happens. */
export type Seldom = {
  /** Whether it is due; then it counts as told. */
  isDue(subject: string): boolean;
  /** It could not be told, so it is due again. */
  forget(subject: string): void;
};

const INTERVAL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** `now` in milliseconds. A clock that was put back puts nothing off. */
export function createSeldom(now: () => number): Seldom {
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
