/** Items that wait for some work. An item that waits already is not added again. */
export type Slices<Item> = { add(item: Item): void; remove(item: Item): void };

/**
 * Does `work` for many items without holding up everything else: for `sliceMs`, then whatever else the process has to do, then the
 * next. `work` must not throw.
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
