import type { UnixMs } from './time.ts';

/**
 * How long the free payable amounts of a requested amount will last. A reserved amount stays reserved, so the free ones only
 * ever get fewer, and an operator must add addresses before they are gone.
 */

/** How much of an amount was taken lately. */
export type AmountUse = {
  used7Days: bigint;
  used30Days: bigint;
  /** When it was first taken; `null` if that was before `countedSince`, or never. */
  firstUseAt: UnixMs | null;
  /** From when on it was counted: 30 days ago, or later where there was too much to count. */
  countedSince: UnixMs;
};

export type Forecast = {
  total: bigint;
  free: bigint;
  /** 0 … 1; 0 where there is nothing at all. */
  freeShare: number;
  perDay7: number;
  perDay30: number;
  /** Whole days until nothing is free at each rate, rounded down; `null` where nothing was used. */
  daysLeft7: number | null;
  daysLeft30: number | null;
  /** The shorter of the two. */
  daysLeft: number | null;
  isLow: boolean;
};

export const DAY_MS = 86_400_000;
/** Below these, an operator is told: there is time to make addresses in the wallet without haste. */
export const LOW_PERCENT = 20n;
export const LOW_DAYS = 14;
/** Fewer uses in 30 days make no rate to raise an alarm by: an amount that was asked for once may never be again. */
export const USES_OF_A_RATE = 5n;

/**
 * The forecast for one amount, of which `free` of `total` payable amounts are free. A rate counts from the first use on, because a project
 * of two days made all its use in two days. It counts over a day at least, because the first hour says nothing of a day.
 */
export function forecastCapacity(
  { total, free }: { total: bigint; free: bigint },
  use: AmountUse,
  now: UnixMs,
): Forecast {
  const [week, month] = [windowMs(7, use, now), windowMs(30, use, now)];
  const daysLeft7 = daysUntilGone(free, use.used7Days, week);
  const daysLeft30 = daysUntilGone(free, use.used30Days, month);
  const daysLeft =
    daysLeft7 === null || daysLeft30 === null ? (daysLeft7 ?? daysLeft30) : Math.min(daysLeft7, daysLeft30);
  const isSoonGone = daysLeft !== null && daysLeft < LOW_DAYS && use.used30Days >= USES_OF_A_RATE;
  return {
    total,
    free,
    freeShare: total === 0n ? 0 : Number(free) / Number(total),
    perDay7: (Number(use.used7Days) * DAY_MS) / week,
    perDay30: (Number(use.used30Days) * DAY_MS) / month,
    daysLeft7,
    daysLeft30,
    daysLeft,
    isLow: total === 0n || free * 100n < total * LOW_PERCENT || isSoonGone,
  };
}

/** Over how long something was used within the last `days`. A young amount's is a day at least, unless less was counted. */
function windowMs(days: number, { firstUseAt, countedSince }: AmountUse, now: UnixMs): number {
  const since = Math.max(now - days * DAY_MS, countedSince);
  const counted = Math.max(now - since, 1);
  if (firstUseAt === null || firstUseAt <= since) return counted;
  return Math.max(now - firstUseAt, Math.min(DAY_MS, counted));
}

function daysUntilGone(free: bigint, used: bigint, overMs: number): number | null {
  return used === 0n ? null : Number((free * BigInt(overMs)) / (used * BigInt(DAY_MS)));
}

/** The most urgent amount for an operator comes first: low ones, then by days left, then by how much is free. */
export function byUrgency(a: Forecast, b: Forecast): number {
  if (a.isLow !== b.isLow) return a.isLow ? -1 : 1;
  const [daysA, daysB] = [a.daysLeft ?? Number.MAX_VALUE, b.daysLeft ?? Number.MAX_VALUE];
  return daysA - daysB || a.freeShare - b.freeShare;
}
