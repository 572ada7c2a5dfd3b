import type { UnixMs } from '../domain/time.ts';

/** For what is told once a minute of each project, however often it happens. */
export type Seldom = {
  /** Whether it is due; then it counts as told. */
  isDue(projectId: string): boolean;
  /** It could not be told, so it is due again. */
  forget(projectId: string): void;
};

const TELL_MS = 60_000;
const MAX_REMEMBERED = 10_000;

export function createSeldom(now: () => UnixMs): Seldom {
  const toldAt = new Map<string, UnixMs>();
  return {
    isDue: (projectId) => {
      const lastAt = toldAt.get(projectId);
      if (lastAt !== undefined && now() - lastAt < TELL_MS) return false;
      if (toldAt.size >= MAX_REMEMBERED) toldAt.clear();
      toldAt.set(projectId, now());
      return true;
    },
    forget: (projectId) => void toldAt.delete(projectId),
  };
}
