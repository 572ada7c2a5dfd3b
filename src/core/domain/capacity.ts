import { type MicroUsdt, microUsdt } from './money.ts';
import { countPayable, POLICIES, type Policy, payableRange, surchargeOf, TAIL_DECIMALS } from './policy.ts';
import { DAY_MS, type UnixMs } from './time.ts';

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

/** The orders that a shop expects, whether paid or not: `perDay` orders a day, spread evenly over `prices` different prices. */
export type ExpectedOrders = { perDay: number; prices: number };

type Rule = { policy: Policy; maxSurchargeMicro: bigint };

/** The number of days that one address lasts, and the number of addresses that are used up in 90 and in 365 days. */
type AddressNeed = { daysOfOne: number; for90Days: number; for365Days: number };

/**
 * Returns how many addresses these orders use up. Prices that are closer together than the surcharge limit share payable amounts, so they
 * need more addresses than this.
 */
export function addressNeed({ perDay, prices }: ExpectedOrders, rule: Rule): AddressNeed {
  const ofOne = prices * Number(countPayable(rule.policy, payableRange(rule, USUAL_MICRO)));
  const forDays = (days: number) => Math.max(1, Math.ceil((perDay * days) / ofOne));
  return { daysOfOne: ofOne / perDay, for90Days: forDays(90), for365Days: forDays(365) };
}

/** Any typical amount works here: a range has 9 code words per 100 units of the tail, and the amount affects only the ends of the range. */
const USUAL_MICRO = microUsdt(25_000_000n);

/**
 * How a policy affects the amounts in use. `perAddress`: how many invoices fit on an address, counted at the amount that allows the fewest.
 * `addedMicro`: payers pay less than this on top of the price. `decimals`: the decimals that payers must be able to send; `null` means the
 * same as the price. `for90Days`: addresses needed at the busiest amount's rate; `null` if no amount has been used.
 */
type ComparedPolicy = {
  policy: Policy;
  perAddress: number;
  addedMicro: MicroUsdt;
  decimals: number | null;
  for90Days: number | null;
};

/** Compares the policies, each with its default surcharge limit, and the project's own policy with its own limit. */
export function comparePolicies(
  own: Rule,
  amounts: readonly { requestedMicro: MicroUsdt; perDay: number }[],
): ComparedPolicy[] {
  const compared = amounts.length === 0 ? [{ requestedMicro: USUAL_MICRO, perDay: 0 }] : amounts;
  return POLICIES.map((policy) => {
    const maxSurchargeMicro = policy === own.policy ? own.maxSurchargeMicro : surchargeOf(policy).usualMicro;
    const held = compared.map(({ requestedMicro, perDay }) => {
      const words = Number(countPayable(policy, payableRange({ policy, maxSurchargeMicro }, requestedMicro)));
      return { words, addresses: Math.ceil((perDay * 90) / words) };
    });
    const for90Days = Math.max(...held.map(({ addresses }) => addresses));
    return {
      policy,
      perAddress: Math.min(...held.map(({ words }) => words)),
      addedMicro: microUsdt(policy === 'exact' ? 0n : maxSurchargeMicro),
      decimals: TAIL_DECIMALS[policy],
      for90Days: for90Days === 0 ? null : for90Days,
    };
  });
}
