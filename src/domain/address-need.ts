import { type MicroUsdt, microUsdt } from './money.ts';
import { countPayable, POLICIES, type Policy, payableRange, surchargeOf, TAIL_DECIMALS } from './policy.ts';

/** Orders that a shop expects, paid or not: so many a day, spread evenly over so many different amounts. */
export type ExpectedOrders = { perDay: number; prices: number };

type Rule = { policy: Policy; maxSurchargeMicro: bigint };

/** How long one address lasts, and how many are used up in 90 and in 365 days. */
export type AddressNeed = { daysOfOne: number; for90Days: number; for365Days: number };

/** The addresses that these orders use up. Amounts nearer to each other than the surcharge share what there is, and need more. */
export function addressNeed({ perDay, prices }: ExpectedOrders, rule: Rule): AddressNeed {
  const ofOne = prices * Number(countPayable(rule.policy, payableRange(rule, USUAL_MICRO)));
  const forDays = (days: number) => Math.max(1, Math.ceil((perDay * days) / ofOne));
  return { daysOfOne: ofOne / perDay, for90Days: forDays(90), for365Days: forDays(365) };
}

/** The amount hardly matters: a range has 9 words of each 100 units of the tail, and only its ends differ. */
const USUAL_MICRO = microUsdt(25_000_000n);

/**
 * What a policy makes of the amounts in use. `perAddress`: invoices of one amount, of the one that has fewest. `addedMicro`: payers pay less
 * than this more. `decimals`: those that they must be able to send; `null`: those of the price. `for90Days`: addresses at the rate of the
 * busiest amount; `null` where nothing was used.
 */
export type ComparedPolicy = {
  policy: Policy;
  perAddress: number;
  addedMicro: MicroUsdt;
  decimals: number | null;
  for90Days: number | null;
};

/** Each policy with the limit that is usual for it, and a project's own with its own limit. */
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
