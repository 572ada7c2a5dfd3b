import { amountAlone, countCodeWords, isCodeWord, type WordRange, wordRange } from './code-word.ts';
import { type MicroUsdt, microUsdt } from './money.ts';

/**
 * How the invoices of one amount are told apart: by a tail on a shared address, of six, four or three decimals, or by an address of their
 * own. An address keeps its policy for life: a word of six decimals, rounded, could be one of four.
 */
export const POLICIES = ['tail', 'tail-4', 'tail-3', 'exact'] as const;

export type Policy = (typeof POLICIES)[number];

/** The decimals that a payer has to be able to send. `null`: those of the requested amount. */
export const TAIL_DECIMALS: Readonly<Record<Policy, number | null>> = {
  tail: 6,
  'tail-4': 4,
  'tail-3': 3,
  exact: null,
};

const unitOf = (policy: Policy) => 10n ** BigInt(6 - (TAIL_DECIMALS[policy] ?? 6));

/** The least limit holds 8 to 10 words. The schema has the same bounds. */
const LEAST_UNITS = 100n;
const MOST_SURCHARGE_MICRO = microUsdt(1_000_000n);

/**
 * What a surcharge limit may be, and is unless said otherwise. The default of a coarser tail holds 90 words and 9, and payers pay less than
 * 0.1 USDT more; that of six decimals holds 900. With `exact` the limit has no effect and waits for a tail.
 */
export function surchargeOf(policy: Policy): { leastMicro: MicroUsdt; mostMicro: MicroUsdt; usualMicro: MicroUsdt } {
  const unitMicro = unitOf(policy);
  const usualMicro = microUsdt(unitMicro === 1n ? 10_000n : 100_000n);
  return { leastMicro: microUsdt(LEAST_UNITS * unitMicro), mostMicro: MOST_SURCHARGE_MICRO, usualMicro };
}

/** The amounts that an invoice can get: with a tail from the requested one to the surcharge limit, with `exact` that alone. */
export function payableRange(
  { policy, maxSurchargeMicro }: { policy: Policy; maxSurchargeMicro: bigint },
  requestedMicro: MicroUsdt,
): WordRange {
  if (policy === 'exact') return amountAlone(requestedMicro);
  return wordRange(requestedMicro, maxSurchargeMicro, unitOf(policy));
}

/** How many invoices of one requested amount an address can take. */
export function countPayable(policy: Policy, range: WordRange): bigint {
  return policy === 'exact' ? 1n : countCodeWords(range);
}

/** Whether any invoice of an address can have this payable amount. */
export function isPayable(policy: Policy, amountMicro: bigint): boolean {
  return policy === 'exact' || (amountMicro > 0n && isCodeWord(amountMicro, unitOf(policy)));
}
