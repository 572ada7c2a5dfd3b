/** For what is told once a minute of each subject, however often it happens. */
export type Seldom = {
  /** Whether it is due; then it counts as told. */
  isDue(subject: string): boolean;
  /** It could not be told, so it is due again. */
  forget(subject: string): void;
};

const TELL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

/** `now` in milliseconds. A clock that was put back puts nothing off. */
export function createSeldom(now: () => number): Seldom {
  const toldAt = new Map<string, number>();
  return {
    isDue: (subject) => {
      const [at, lastAt] = [now(), toldAt.get(subject)];
      if (lastAt !== undefined && at >= lastAt && at - lastAt < TELL_MS) return false;
      if (toldAt.size >= MAX_REMEMBERED) toldAt.clear();
      toldAt.set(subject, at);
      return true;
    },
    forget: (subject) => void toldAt.delete(subject),
  };
}
