import { amountAlone, countCodeWords, isCodeWord, type WordRange, wordRange } from './code-word.ts';
import { type MicroUsdt, microUsdt } from './money.ts';

/**
 * How the invoices of one amount are distinguished: by a tail on a shared address, of six, four or three decimals, or by a separate address
 * each. An address keeps its policy permanently, because a word of six decimals, when rounded, could be one of four.
 */
export const POLICIES = ['tail', 'tail-4', 'tail-3', 'exact'] as const;

export type Policy = (typeof POLICIES)[number];

/** The decimals that a payer must be able to send. `null`: those of the requested amount. */
export const TAIL_DECIMALS: Readonly<Record<Policy, number | null>> = {
  tail: 6,
  'tail-4': 4,
  'tail-3': 3,
  exact: null,
};

const unitOf = (policy: Policy) => 10n ** BigInt(6 - (TAIL_DECIMALS[policy] ?? 6));

/** The minimum limit has 8 to 10 words. The schema has the same limits. */
const LEAST_UNITS = 100n;
const MOST_SURCHARGE_MICRO = microUsdt(1_000_000n);

/**
 * The allowed surcharge limits and the default. The defaults of the coarser tails have 90 and 9 words, and payers pay less than 0.1 USDT
 * more. The default of six decimals has 900 words. With `exact` the limit has no effect until the policy changes to a tail.
 */
export function surchargeOf(policy: Policy): { leastMicro: MicroUsdt; mostMicro: MicroUsdt; usualMicro: MicroUsdt } {
  const unitMicro = unitOf(policy);
  const usualMicro = microUsdt(unitMicro === 1n ? 10_000n : 100_000n);
  return { leastMicro: microUsdt(LEAST_UNITS * unitMicro), mostMicro: MOST_SURCHARGE_MICRO, usualMicro };
}

/**
 * The amounts that an invoice can get: with a tail from the requested amount up to the surcharge limit, with `exact` only the requested
 * amount.
 */
export function payableRange(
  { policy, maxSurchargeMicro }: { policy: Policy; maxSurchargeMicro: bigint },
  requestedMicro: MicroUsdt,
): WordRange {
  if (policy === 'exact') return amountAlone(requestedMicro);
  return wordRange(requestedMicro, maxSurchargeMicro, unitOf(policy));
}

/** How many invoices of one requested amount fit on an address. */
export function countPayable(policy: Policy, range: WordRange): bigint {
  return policy === 'exact' ? 1n : countCodeWords(range);
}

/** Whether an invoice on an address can have this payable amount. */
export function isPayable(policy: Policy, amountMicro: bigint): boolean {
  return policy === 'exact' || (amountMicro > 0n && isCodeWord(amountMicro, unitOf(policy)));
}
