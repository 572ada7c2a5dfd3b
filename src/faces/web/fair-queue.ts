/** Items by holder, each holder's in order of arrival. Every call takes constant time. */
export function createFairQueue<Item>() {
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
  /** Removes and returns a holder's oldest item. */
  const takeOldest = (holder: string): Item | undefined => {
    for (const item of held.get(holder) ?? []) {
      remove(holder, item);
      return item;
    }
    return undefined;
  };
  return {
    add: (holder: string, item: Item) => {
      const items = held.get(holder) ?? new Set();
      if (items.has(item)) return;
      items.add(item);
      held.set(holder, items);
      resize(holder, items.size - 1, items.size);
    },
    remove,
    count: () => count,
    countOf: (holder: string) => held.get(holder)?.size ?? 0,
    /** Removes and returns the oldest item that belongs to the holder whose turn it is. The holders take turns. */
    takeNext: (): Item | undefined => {
      for (const [holder, items] of held) {
        const item = takeOldest(holder);
        held.delete(holder);
        if (items.size > 0) held.set(holder, items);
        return item;
      }
      return undefined;
    },
    takeOldest,
    /** Returns the holder with the most items. */
    largest: (): string | undefined => {
      for (const holder of bySize[most] ?? []) return holder;
      return undefined;
    },
    entries: function* (): Iterable<[holder: string, item: Item]> {
      for (const [holder, items] of held) for (const item of items) yield [holder, item];
    },
  };
}
