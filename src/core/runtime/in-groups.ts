/**
 * Maps items in order, `size` at a time. The next group starts when the previous one is complete. After the first rejection, it throws and
 * starts no more groups. After each group, `onGroup` is called with the number of finished items.
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
