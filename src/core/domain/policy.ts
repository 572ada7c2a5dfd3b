import { amountAlone, countCodeWords, isCodeWord, type WordRange, wordRange } from './code-word.ts';
import { type MicroUsdt, microUsdt } from './money.ts';

/**
 * How invoices for the same amount are distinguished: by a tail of six, four or three decimals on a shared address, or by a separate
 * address for each. An address's policy never changes, because a six-decimal word could round to a four-decimal word.
 */
export const POLICIES = ['tail', 'tail-4', 'tail-3', 'exact'] as const;

export type Policy = (typeof POLICIES)[number];

/** The number of decimals that a payer must be able to send. `null` means the same as the requested amount. */
export const TAIL_DECIMALS: Readonly<Record<Policy, number | null>> = {
  tail: 6,
  'tail-4': 4,
  'tail-3': 3,
  exact: null,
};

const unitOf = (policy: Policy) => 10n ** BigInt(6 - (TAIL_DECIMALS[policy] ?? 6));

/** With the smallest allowed limit, a range has 8 to 10 code words. The database schema has the same limits. */
const LEAST_UNITS = 100n;
const MOST_SURCHARGE_MICRO = microUsdt(1_000_000n);

/**
 * Returns the allowed surcharge limits and the default. By default, a range has 900 code words with six decimals, and 90 or 9 with the
 * coarser tails, and payers pay less than 0.1 USDT on top. With `exact`, the limit has no effect until the policy changes to a tail.
 */
export function surchargeOf(policy: Policy): { leastMicro: MicroUsdt; mostMicro: MicroUsdt; usualMicro: MicroUsdt } {
  const unitMicro = unitOf(policy);
  const usualMicro = microUsdt(unitMicro === 1n ? 10_000n : 100_000n);
  return { leastMicro: microUsdt(LEAST_UNITS * unitMicro), mostMicro: MOST_SURCHARGE_MICRO, usualMicro };
}

/**
 * Returns the payable amounts that an invoice can get: with a tail, from the requested amount up to the surcharge limit; with `exact`, only
 * the requested amount.
 */
export function payableRange(
  { policy, maxSurchargeMicro }: { policy: Policy; maxSurchargeMicro: bigint },
  requestedMicro: MicroUsdt,
): WordRange {
  if (policy === 'exact') return amountAlone(requestedMicro);
  return wordRange(requestedMicro, maxSurchargeMicro, unitOf(policy));
}

/** Returns how many invoices for one requested amount fit on an address. */
export function countPayable(policy: Policy, range: WordRange): bigint {
  return policy === 'exact' ? 1n : countCodeWords(range);
}

/** Whether this can be the payable amount of an invoice at an address. */
export function isPayable(policy: Policy, amountMicro: bigint): boolean {
  return policy === 'exact' || (amountMicro > 0n && isCodeWord(amountMicro, unitOf(policy)));
}
