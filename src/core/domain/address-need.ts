import { type MicroUsdt, microUsdt } from './money.ts';
import { countPayable, POLICIES, type Policy, payableRange, surchargeOf, TAIL_DECIMALS } from './policy.ts';

/** The orders that a shop expects, paid or not: `perDay` a day, spread evenly over `prices` prices. */
export type ExpectedOrders = { perDay: number; prices: number };

type Rule = { policy: Policy; maxSurchargeMicro: bigint };

/** How long one address lasts, and how many addresses are used up in 90 and in 365 days. */
export type AddressNeed = { daysOfOne: number; for90Days: number; for365Days: number };

/**
 * The number of addresses that these orders use up. Prices that are closer together than the surcharge limit share payable amounts, and
 * need more addresses.
 */
export function addressNeed({ perDay, prices }: ExpectedOrders, rule: Rule): AddressNeed {
  const ofOne = prices * Number(countPayable(rule.policy, payableRange(rule, USUAL_MICRO)));
  const forDays = (days: number) => Math.max(1, Math.ceil((perDay * days) / ofOne));
  return { daysOfOne: ofOne / perDay, for90Days: forDays(90), for365Days: forDays(365) };
}

/** The amount hardly matters: a range has 9 words per 100 units of the tail, and only its ends vary. */
const USUAL_MICRO = microUsdt(25_000_000n);

/**
 * The effect of a policy on the amounts in use. `perAddress`: invoices per address of the amount that has fewest. `addedMicro`: payers pay
 * less than this on top. `decimals`: those that payers must be able to send; `null`: the decimals of the price. `for90Days`: addresses at
 * the rate of the busiest amount; `null` if nothing was used.
 */
export type ComparedPolicy = {
  policy: Policy;
  perAddress: number;
  addedMicro: MicroUsdt;
  decimals: number | null;
  for90Days: number | null;
};

/** Compares the policies, each with its usual limit, and the project's own with its own limit. */
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
