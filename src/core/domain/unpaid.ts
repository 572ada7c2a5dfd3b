/**
 * The limits of a project's unpaid invoices, so that an attacker who makes a shop create orders can't use up an amount. A reservation is
 * permanent. Unpaid means neither PAID nor CONFIRMING. `null`: no limit.
 */
export type UnpaidLimits = {
  /** Counts the invoices of the last 30 minutes, which with the default lifetime are all that wait. */
  maxUnpaid: number | null;
  maxUnpaidPerMinute: number | null;
};

/**
 * 20 a minute in the long run. An amount has 900 words on an address. So in the 30 minutes after the alarm not even one address is used up,
 * and three addresses last 2 h. A shop where every second customer pays within 5 minutes reaches the limit at 2,000 orders an hour.
 */
export const DEFAULT_UNPAID_LIMITS = { maxUnpaid: 600, maxUnpaidPerMinute: 120 } as const satisfies UnpaidLimits;

export const MINUTE_MS = 60_000;
/**
 * The same for all projects. With a short lifetime, a limit on waiting invoices would have no effect; with a long one it would stop honest
 * shops.
 */
export const UNPAID_MS = 30 * MINUTE_MS;

/** The unpaid invoices of the last 30 minutes and of the last minute. */
export type UnpaidCounts = { unpaid: number; unpaidLastMinute: number };

export type UnpaidRule = 'unpaid' | 'unpaid-per-minute';

/** The limit with the least room left; `null` if there's none. */
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

/** Whether a flood is over: half of each limit is free again, so that the alarm doesn't flap. */
export function isUnderLimits(limits: UnpaidLimits, counts: UnpaidCounts): boolean {
  const isHalf = (count: number, limit: number | null) => limit === null || count * 2 <= limit;
  return isHalf(counts.unpaid, limits.maxUnpaid) && isHalf(counts.unpaidLastMinute, limits.maxUnpaidPerMinute);
}
