/** Milliseconds since 1970-01-01T00:00:00Z. */
export type UnixMs = number & { readonly __unit: 'unix-ms' };

/** Marks a non-negative integer number of milliseconds as a time. Throws for anything else. */
export function unixMs(value: number): UnixMs {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`not a time in milliseconds: ${value}`);
  return value as UnixMs;
}

/** Formats a time in ISO 8601, in UTC with milliseconds: `2026-09-01T12:00:00.000Z`. */
export function toIso(time: UnixMs): string {
  return new Date(time).toISOString();
}
