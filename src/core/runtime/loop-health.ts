/** Tracks the loops of a process that keep failing, whatever they do and whichever process holds a lease. */
export type LoopHealth = {
  /** Records that a round of a loop failed, or (with `false`) finished. */
  note(name: string, hasFailed: boolean): void;
  /** Checks all loops. Returns those that failed and finished no round for this many checks in a row, including this one. */
  look(looks: number): string[];
};

/** It counts checks instead of time, because a process that was paused hasn't failed meanwhile. */
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
