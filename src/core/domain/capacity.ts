import type { UnixMs } from './time.ts';

/**
 * Usage data to forecast how long the free payable amounts for one requested amount will last. A reserved amount is never freed, so the
 * number of free amounts only falls, and an operator must add addresses before they run out.
 */

export type AmountUse = {
  used7Days: bigint;
  used30Days: bigint;
  /** When the amount was first used; `null` if never, or before `countedSince`. */
  firstUseAt: UnixMs | null;
  /** The time when counting starts: 30 days ago, or later if there was too much to count. */
  countedSince: UnixMs;
};

export type Forecast = {
  total: bigint;
  free: bigint;
  /** The share of amounts that are free, from 0 to 1. It's 0 if there are no amounts at all. */
  freeShare: number;
  perDay7: number;
  perDay30: number;
  /** The whole days (rounded down) until no amounts are free, at each rate; `null` if no amount was used. */
  daysLeft7: number | null;
  daysLeft30: number | null;
  /** The smaller value of `daysLeft7` and `daysLeft30`. */
  daysLeft: number | null;
  isLow: boolean;
};

export const DAY_MS = 86_400_000;
/** Operators are notified below these limits, which still leave enough time to create addresses in a wallet. */
export const LOW_PERCENT = 20n;
export const LOW_DAYS = 14;
/** With fewer uses in 30 days, no alarm is raised, because an amount that was requested once may never be requested again. */
export const USES_OF_A_RATE = 5n;

/**
 * Forecasts one requested amount with `total` payable amounts, `free` of which are still free. Rates are measured from the first use,
 * because a project that is two days old has been used for only two days. The measured period is at least a day, because the first hour
 * says little about a whole day.
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

/**
 * Returns the period, within the last `days`, over which use is measured. For a new amount, the period is at least one day, unless the
 * counted period is shorter.
 */
function windowMs(days: number, { firstUseAt, countedSince }: AmountUse, now: UnixMs): number {
  const since = Math.max(now - days * DAY_MS, countedSince);
  const counted = Math.max(now - since, 1);
  if (firstUseAt === null || firstUseAt <= since) return counted;
  return Math.max(now - firstUseAt, Math.min(DAY_MS, counted));
}

function daysUntilGone(free: bigint, used: bigint, overMs: number): number | null {
  return used === 0n ? null : Number((free * BigInt(overMs)) / (used * BigInt(DAY_MS)));
}

/** Sorts the most urgent amount first: low amounts come before others, then fewer days left, then a smaller free share. */
export function byUrgency(a: Forecast, b: Forecast): number {
  if (a.isLow !== b.isLow) return a.isLow ? -1 : 1;
  const [daysA, daysB] = [a.daysLeft ?? Number.MAX_VALUE, b.daysLeft ?? Number.MAX_VALUE];
  return daysA - daysB || a.freeShare - b.freeShare;
}
