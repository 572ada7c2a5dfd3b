import { MINUTE_MS } from './time.ts';
/**
 * Limits on a project's unpaid invoices. Reservations are permanent, so without limits an attacker who makes a shop create orders could use
 * up an amount. Unpaid means neither PAID nor CONFIRMING. `null` means no limit.
 */
export type UnpaidLimits = {
  /**
   * Limits the invoices from the last 30 minutes. With the default lifetime, these are all of the invoices that are still waiting for
   * payment.
   */
  maxUnpaid: number | null;
  maxUnpaidPerMinute: number | null;
};

/**
 * In the long run, these limits allow 20 invoices a minute. An amount has 900 code words per address, so an attack can't use up even one
 * address in the 30 minutes after the alarm, and three addresses last 2 h. A shop where every second customer pays within 5 minutes reaches
 * the limit at 2,000 orders an hour.
 */
export const DEFAULT_UNPAID_LIMITS = { maxUnpaid: 600, maxUnpaidPerMinute: 120 } as const satisfies UnpaidLimits;

/**
 * This period is the same for all projects, whatever their invoice lifetime. If the limit counted only waiting invoices, it would have no
 * effect on projects with a short lifetime, and would stop honest shops with a long one.
 */
export const UNPAID_MS = 30 * MINUTE_MS;

/** How many invoices from the last 30 minutes and from the last minute are unpaid. */
type UnpaidCounts = { unpaid: number; unpaidLastMinute: number };

export type UnpaidRule = 'unpaid' | 'unpaid-per-minute';

/** Returns the limit that is closest to being reached, or `null` if there's none. */
export function tightest(
  { maxUnpaid, maxUnpaidPerMinute }: UnpaidLimits,
  { unpaid, unpaidLastMinute }: UnpaidCounts,
): { rule: UnpaidRule; limit: number; left: number } | null {
  const limitOf = (rule: UnpaidRule, limit: number | null, count: number) =>
    limit === null ? [] : [{ rule, limit, left: limit - count }];
  const limits = [
    ...limitOf('unpaid', maxUnpaid, unpaid),
    ...limitOf('unpaid-per-minute', maxUnpaidPerMinute, unpaidLastMinute),
  ];
  return limits.toSorted((a, b) => a.left - b.left)[0] ?? null;
}

/** Whether a flood is over. At least half of each limit must be free again, so that the alarm doesn't flap. */
export function isUnderLimits(limits: UnpaidLimits, counts: UnpaidCounts): boolean {
  const isHalf = (count: number, limit: number | null) => limit === null || count * 2 <= limit;
  return isHalf(counts.unpaid, limits.maxUnpaid) && isHalf(counts.unpaidLastMinute, limits.maxUnpaidPerMinute);
}
