/** Milliseconds since 1970-01-01T00:00:00Z. */
export type UnixMs = number & { readonly __unit: 'unix-ms' };

export const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000] as const;

/** Marks a non-negative integer number of milliseconds as a time. Throws for anything else. */
export function unixMs(value: number): UnixMs {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not a time in milliseconds: ${value}`);
  return value as UnixMs;
}

/** Whether less than `ms` have passed since `at`. False if the clock was set back since, so that nothing is kept for longer than `ms`. */
export function isRecent(at: number, now: number, ms: number): boolean {
  return at <= now && now - at < ms;
}

/** Formats a time in ISO 8601, in UTC with milliseconds: `2026-09-01T12:00:00.000Z`. */
export function toIso(time: UnixMs): string {
  return new Date(time).toISOString();
}
