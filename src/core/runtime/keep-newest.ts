/** Adds an entry to a map and drops the oldest entry if there are more than `max`. A Map keeps its insertion order. */
export function keepNewest<Value>(map: Map<string, Value>, name: string, value: Value, max: number): void {
  map.delete(name);
  map.set(name, value);
  if (map.size > max) map.delete(map.keys().next().value ?? name);
}
