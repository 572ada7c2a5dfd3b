/**
 * The solid height: the one that more than 70 % of the producers have built on (java-tron `DposService.updateSolidBlock`).
 * `latest` holds the height of each active producer's last block, 0 if it has none.
 */
export function solidNumberOf(latest: readonly number[]): number {
  const ascending = latest.toSorted((left, right) => left - right);
  return ascending[Math.floor((latest.length * 30) / 100)] ?? 0;
}
