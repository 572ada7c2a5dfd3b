/** Items by holder, each holder's in order of arrival. Every call takes constant time. */
export type FairQueue<Item> = {
  add(holder: string, item: Item): void;
  remove(holder: string, item: Item): void;
  count(): number;
  countOf(holder: string): number;
  /** Removes and returns the oldest item that belongs to the holder whose turn it is. The holders take turns. */
  takeNext(): Item | undefined;
  /** Removes and returns a holder's oldest item. */
  takeOldest(holder: string): Item | undefined;
  /** Returns the holder with the most items. */
  largest(): string | undefined;
  entries(): Iterable<[holder: string, item: Item]>;
};

export function createFairQueue<Item>(): FairQueue<Item> {
  // Maps and Sets keep their insertion order. The first holder in the map is the next one.
  const held = new Map<string, Set<Item>>();
  /** The holders by their number of items. */
  const bySize: Set<string>[] = [];
  let [count, most] = [0, 0];
  const resize = (holder: string, from: number, to: number) => {
    count += to - from;
    bySize[from]?.delete(holder);
    bySize[to] ??= new Set();
    if (to > 0) bySize[to].add(holder);
    // A size changes only by one, so if a holder alone had the most items, it's still among those with the most.
    if (to > most || (from === most && bySize[from]?.size === 0)) most = to;
  };
  const remove = (holder: string, item: Item) => {
    const items = held.get(holder);
    if (items === undefined || !items.delete(item)) return;
    if (items.size === 0) held.delete(holder);
    resize(holder, items.size + 1, items.size);
  };
  const takeOldest = (holder: string) => {
    for (const item of held.get(holder) ?? []) {
      remove(holder, item);
      return item;
    }
    return undefined;
  };
  return {
    add: (holder, item) => {
      const items = held.get(holder) ?? new Set();
      if (items.has(item)) return;
      items.add(item);
      held.set(holder, items);
      resize(holder, items.size - 1, items.size);
    },
    remove,
    count: () => count,
    countOf: (holder) => held.get(holder)?.size ?? 0,
    takeNext: () => {
      for (const [holder, items] of held) {
        const item = takeOldest(holder);
        held.delete(holder);
        if (items.size > 0) held.set(holder, items);
        return item;
      }
      return undefined;
    },
    takeOldest,
    largest: () => {
      for (const holder of bySize[most] ?? []) return holder;
      return undefined;
    },
    entries: function* () {
      for (const [holder, items] of held) for (const item of items) yield [holder, item];
    },
  };
}
