/** Which loops of a process fail, and since when, whatever they do and whoever holds a lease. */
export type LoopHealth = {
  /** A round of a loop failed, or with `false` one was finished. */
  note(name: string, hasFailed: boolean): void;
  /** A look at all: the loops that failed, and finished no round, at this look and at so many before it. */
  look(looks: number): string[];
};

/** Looks are counted and not time: a process that was paused has not failed meanwhile. */
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
