import { type MicroUsdt, microUsdt } from './money.ts';
import { countPayable, POLICIES, type Policy, payableRange, surchargeOf, TAIL_DECIMALS } from './policy.ts';

/** The orders that a shop expects, whether paid or not: `perDay` orders a day, spread evenly over `prices` different prices. */
export type ExpectedOrders = { perDay: number; prices: number };

type Rule = { policy: Policy; maxSurchargeMicro: bigint };

/** The number of days that one address lasts, and the number of addresses that are used up in 90 and in 365 days. */
export type AddressNeed = { daysOfOne: number; for90Days: number; for365Days: number };

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
export type ComparedPolicy = {
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
