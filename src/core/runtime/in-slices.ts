/** Items that are waiting for work. Adding an item that is already waiting has no effect. */
export type Slices<Item> = { add(item: Item): void; remove(item: Item): void };

/**
 * Runs `work` for many items without blocking the process: after every `sliceMs` of work, it yields to the event loop. `work` must not
 * throw.
 */
export function inSlices<Item>(sliceMs: number, work: (item: Item) => void): Slices<Item> {
  const waiting = new Set<Item>();
  let isPlanned = false;
  const plan = () => {
    if (isPlanned || waiting.size === 0) return;
    isPlanned = true;
    setImmediate(doSlice);
  };
  const doSlice = () => {
    const endMs = performance.now() + sliceMs;
    for (const item of waiting) {
      waiting.delete(item);
      work(item);
      if (performance.now() >= endMs) break;
    }
    isPlanned = false;
    plan();
  };
  return {
    add: (item) => {
      waiting.add(item);
      plan();
    },
    remove: (item) => {
      waiting.delete(item);
    },
  };
}
