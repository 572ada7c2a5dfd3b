import { countCodeWords, type WordRange, wordRange } from './code-word.ts';
import { microUsdt } from './money.ts';
import type { Policy } from './policy.ts';

/** Orders that a shop expects, paid or not: so many a day, spread evenly over so many different amounts. */
export type ExpectedOrders = { perDay: number; prices: number };

/** How long one address lasts, and how many are used up in 90 and in 365 days. */
export type AddressNeed = { daysOfOne: number; for90Days: number; for365Days: number };

/** The addresses that these orders use up. Amounts nearer to each other than the surcharge share what there is, and need more. */
export function addressNeed(
  { perDay, prices }: ExpectedOrders,
  { policy, maxSurchargeMicro }: { policy: Policy; maxSurchargeMicro: bigint },
): AddressNeed {
  const ofOne = prices * Number(countPayable(policy, wordRange(microUsdt(USUAL_MICRO), maxSurchargeMicro)));
  const forDays = (days: number) => Math.max(1, Math.ceil((perDay * days) / ofOne));
  return { daysOfOne: ofOne / perDay, for90Days: forDays(90), for365Days: forDays(365) };
}

/** The amount hardly matters: a range has 9 words of each 100 micro-USDT, and only its ends differ. */
const USUAL_MICRO = 25_000_000n;

/** How many invoices of one requested amount an address can take. */
export function countPayable(policy: Policy, range: WordRange): bigint {
  return policy === 'exact' ? 1n : countCodeWords(range);
}
