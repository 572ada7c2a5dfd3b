/**
 * Maps items in their order, `size` of them at the same time: the next group starts when all of one are there. The first
 * rejection is thrown, and no further group starts. `onGroup` hears after each group how many are done.
 */
export async function inGroups<Item, Result>(
  items: readonly Item[],
  size: number,
  map: (item: Item) => Promise<Result>,
  onGroup: (done: number) => void = () => undefined,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += size) {
    results.push(...(await Promise.all(items.slice(start, start + size).map((item) => map(item)))));
    onGroup(results.length);
  }
  return results;
}
