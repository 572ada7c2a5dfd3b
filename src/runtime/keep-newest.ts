/** Puts an entry into a map of at most `max`, whose oldest goes. A map keeps the order in which its entries were put there. */
export function keepNewest<Value>(map: Map<string, Value>, name: string, value: Value, max: number): void {
  map.delete(name);
  map.set(name, value);
  if (map.size > max) map.delete(map.keys().next().value ?? name);
}
