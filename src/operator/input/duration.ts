const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads `30m`, `12h` or `90d` as milliseconds; `null` for anything else, also for 0. */
export function parseDuration(text: string): number | null {
  const [, digits, unit] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Writes a duration in the largest unit that holds it without a rest: 1800000 → `30m`. */
export function formatDuration(durationMs: number): string {
  const unit = (['d', 'h'] as const).find((each) => durationMs % UNIT_MS[each] === 0) ?? 'm';
  return `${Math.round(durationMs / UNIT_MS[unit])}${unit}`;
}

const ISO = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Reads a moment: a duration from now (`90d`) or ISO 8601 (`2027-01-31` is midnight UTC, a time needs its zone).
 * `null` when it is neither, or no real date.
 */
export function parseMoment(text: string, nowMs: number): number | null {
  const durationMs = parseDuration(text);
  if (durationMs !== null) return nowMs + durationMs;
  const [, day] = ISO.exec(text) ?? [];
  if (day === undefined) return null;
  const dayMs = Date.parse(day);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return null;
  const timeMs = Date.parse(text);
  return Number.isNaN(timeMs) ? null : timeMs;
}
