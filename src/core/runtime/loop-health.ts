/** Tracks which loops of a process keep failing, whatever they do and whichever process holds a lease. */
export type LoopHealth = {
  /** Records whether a round of a loop failed or finished. */
  note(name: string, hasFailed: boolean): void;
  /** Checks all loops. Returns those that have failed and finished no round during the last `looks` checks, including this one. */
  look(looks: number): string[];
};

/** Counts checks instead of time, because a process that was paused hasn't failed during the pause. */
export function createLoopHealth(): LoopHealth {
  const failing = new Map<string, number>();
  return {
    note: (name, hasFailed) => {
      if (!hasFailed) failing.delete(name);
      else if (!failing.has(name)) failing.set(name, 0);
    },
    look: (looks) => {
      for (const [name, seen] of failing) failing.set(name, seen + 1);
      return [...failing].flatMap(([name, seen]) => (seen > looks ? [name] : []));
    },
  };
}
