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

/**
 * Code words are amounts whose digits have the Damm check digit 0. The last decimal that a tail may use is called the unit. The unit's
 * digit isn't 0, and all decimals after it are 0. If a digit is wrong or two neighbouring digits are swapped, either the checksum no longer
 * matches or there's a digit after the unit. If a word is rounded or truncated to fewer decimals, its unit becomes 0. So none of these
 * mistakes turns one invoice's amount into another's. Trailing zeros don't change Damm's check digit, so a word in a coarser unit is also a
 * word in micro-USDT with trailing zeros.
 */

/** H. Michael Damm's totally anti-symmetric quasigroup of order 10 ("Total anti-symmetrische Quasigruppen", 2004). */
const DAMM = Uint8Array.of(
  ...[0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
  ...[7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
  ...[4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
  ...[1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
  ...[6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
  ...[3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
  ...[5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
  ...[8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
  ...[9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
  ...[2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
);
const DIGIT_0 = '0'.charCodeAt(0);

/** Returns the Damm check digit of a number's decimal digits. 0 means that the last digit is the check digit of the others. */
export function dammDigit(value: bigint): number {
  const digits = value.toString();
  let interim = 0;
  for (let i = 0; i < digits.length; i++) interim = DAMM[interim * 10 + digits.charCodeAt(i) - DIGIT_0] ?? 0;
  return interim;
}

/** `unitMicro` is the value of the tail's last decimal: 1, 100 or 1,000 micro-USDT. */
export function isCodeWord(amountMicro: bigint, unitMicro = 1n): boolean {
  const units = amountMicro / unitMicro;
  return units * unitMicro === amountMicro && units % 10n !== 0n && dammDigit(units) === 0;
}

/**
 * The range of payable amounts for a requested amount: from that amount up to but not including the surcharge limit. `unitMicro` is the
 * unit of its words. If the requested amount has more decimals, the first word is the next higher one.
 */
export type WordRange = { fromMicro: bigint; belowMicro: bigint; unitMicro: bigint };

export function wordRange(requestedMicro: MicroUsdt, maxSurchargeMicro: bigint, unitMicro = 1n): WordRange {
  return { fromMicro: requestedMicro, belowMicro: requestedMicro + maxSurchargeMicro, unitMicro };
}

/** Returns the range that contains only one amount. Under the policy `exact`, no other amount is possible. */
export function amountAlone(amountMicro: MicroUsdt): WordRange {
  return wordRange(amountMicro, 1n);
}

/** Returns the code word made of `prefix` and its check digit, or `null` if it ends in 0 or lies outside the range. */
function wordOf(prefix: bigint, range: WordRange): MicroUsdt | null {
  const check = dammDigit(prefix);
  const word = (prefix * 10n + BigInt(check)) * range.unitMicro;
  const isInside = word >= range.fromMicro && word < range.belowMicro;
  return check !== 0 && isInside ? (word as MicroUsdt) : null;
}

/** Returns all code words in a range in ascending order. There are about 9 per 100 units of surcharge. */
export function codeWords(range: WordRange): MicroUsdt[] {
  const words: MicroUsdt[] = [];
  const tenUnits = 10n * range.unitMicro;
  for (let prefix = range.fromMicro / tenUnits; prefix * tenUnits < range.belowMicro; prefix++) {
    const word = wordOf(prefix, range);
    if (word !== null) words.push(word);
  }
  return words;
}

const BLOCK_UNITS = 100n;
const WORDS_PER_BLOCK = 9n;

/**
 * Returns the number of code words in a range. Ten prefixes that differ only in the last digit have all ten check digits, so each block of
 * 100 units that starts at a multiple of 100 has 9 words. So only the ends need to be counted, although a 1 USDT range has up to 100,000
 * prefixes.
 */
export function countCodeWords(range: WordRange): bigint {
  const { fromMicro, belowMicro } = range;
  const block = BLOCK_UNITS * range.unitMicro;
  const firstBlock = ((fromMicro + block - 1n) / block) * block;
  const lastBlock = (belowMicro / block) * block;
  if (firstBlock >= lastBlock) return BigInt(codeWords(range).length);
  const ends = [
    { ...range, belowMicro: firstBlock },
    { ...range, fromMicro: lastBlock },
  ];
  const words = ends.reduce((sum, end) => sum + codeWords(end).length, 0);
  return ((lastBlock - firstBlock) / block) * WORDS_PER_BLOCK + BigInt(words);
}

/**
 * Randomly draws up to `count` different code words from a range, so that amounts don't reveal the number of orders. `randomBelow(n)`
 * returns a uniform integer from 0 to n−1. The number of draws is limited, so a tiny range may yield fewer words.
 */
export function drawCodeWords(range: WordRange, count: number, randomBelow: (n: number) => number): MicroUsdt[] {
  const tenUnits = 10n * range.unitMicro;
  const first = range.fromMicro / tenUnits;
  const prefixes = Number((range.belowMicro - 1n) / tenUnits - first) + 1;
  const words = new Set<MicroUsdt>();
  // One in ten prefixes has no word. Unless the range is tiny, 4 draws per word almost always fill the set.
  for (let draws = 0; draws < count * 4 && words.size < count; draws++) {
    const word = wordOf(first + BigInt(randomBelow(prefixes)), range);
    if (word !== null) words.add(word);
  }
  return [...words];
}
