/** `2026-09-01 12:00`, of ISO 8601 in UTC. */
export function isoMinute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}

/** `2026-09-01 12:00:00`, of ISO 8601 in UTC. */
export function isoSecond(time: string): string {
  return time.slice(0, 19).replace('T', ' ');
}
