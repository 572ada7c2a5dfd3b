import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CREATED_AT, suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { microUsdt } from '../money.ts';
import { codeWords, isPayable, POLICIES, type Policy, payableRange, surchargeOf } from '../policy.ts';
import { unixMs } from '../time.ts';
import { feeDeducted, overpaid } from './fee-errors.ts';
import type { Sibling } from './finding.ts';
import { fractionOfInvoice, paidTwice, partWithSiblings, siblingSums } from './payment-patterns.ts';
import { pointMisplaced, requestedAmount, roundedOrTruncated } from './rounding-errors.ts';
import { searchRanges } from './search-ranges.ts';
import { typingOrigins } from './typing-errors.ts';

const SURCHARGE_MICRO = 10_000n;
const CODE_WORDS = codeWords(
  payableRange({ policy: 'tail', maxSurchargeMicro: SURCHARGE_MICRO }, microUsdt(25_000_000n)),
);

function rangesOf(amountMicro: bigint, policy: Policy = 'tail', siblings: readonly Sibling[] = []) {
  const transfer = { amountMicro, from: 'TSender', to: 'THere', at: CREATED_AT };
  return searchRanges({ transfer, policy, siblings }, surchargeOf(policy).usualMicro);
}

const holds = (ranges: ReturnType<typeof rangesOf>, micro: bigint) =>
  ranges.some(({ low, high }) => low <= micro && micro <= high);

/** What may be made of an amount on its way. */
const spoilt = fc.oneof(
  fc.constantFrom(500_000n, 1_000_000n, 5_000_000n, 370_000n, 1_100_000n).map((fee) => (micro: bigint) => micro - fee),
  fc.constantFrom(1_000_000n, 100_000n).map((fee) => (micro: bigint) => micro + fee),
  fc.constantFrom(10n, 50n, 100n, 300n).map((share) => (micro: bigint) => (micro * (10_000n - share)) / 10_000n),
  fc
    .constantFrom(10n, 100n, 1_000n, 10_000n, 100_000n, 1_000_000n)
    .map((unit) => (micro: bigint) => (micro / unit) * unit),
  fc.constantFrom(10n, 1_000n, 1_000_000n).map((unit) => (micro: bigint) => (micro / unit + 1n) * unit),
  fc.constantFrom(10n, 100n, 1_000_000n).map((factor) => (micro: bigint) => micro * factor),
  fc.constantFrom(10n, 100n, 1_000n, 2n, 3n, 4n).map((factor) => (micro: bigint) => micro / factor),
  fc.constantFrom(0n, 1n).map((more) => (micro: bigint) => micro / 3n + more),
  fc.constant((micro: bigint) => micro * 2n),
  fc.integer({ min: 0, max: 9 }).map((digit) => (micro: bigint) => micro - (micro % 10n) + BigInt(digit)),
);

const RULES = [
  requestedAmount,
  roundedOrTruncated,
  pointMisplaced,
  feeDeducted,
  overpaid,
  paidTwice,
  fractionOfInvoice,
] as const;

test('whatever a rule explains is looked for', () => {
  const given = fc.record({
    requested: fc.constantFrom(25_000_000n, 1_000_000n, 19_990_000n, 120_500_000n),
    tail: fc.bigInt(0n, SURCHARGE_MICRO - 30n),
    spoil: spoilt,
    isRequested: fc.boolean(),
    sibling: fc.option(fc.bigInt(1n, 20_000_000n), { nil: null }),
    policy: fc.constantFrom(...POLICIES),
  });
  fc.assert(
    fc.property(given, ({ requested, tail, spoil, isRequested, sibling, policy }) => {
      const payable = policy === 'exact' ? requested : nextWord(policy, requested + tail);
      const siblings = sibling === null ? [] : [{ amountMicro: sibling, at: unixMs(CREATED_AT - 1000) }];
      const sent = isRequested ? requested : payable;
      const amountMicro = sibling === null ? spoil(sent) : sent - sibling;
      fc.pre(amountMicro > 0n && amountMicro !== payable);
      // What came of the requested amount is looked for only where it is round, as requested amounts are.
      const invoice = suspectOf(amountMicro % 10_000n === 0n ? requested : 7n, payable);
      const isExplained =
        RULES.some((rule) => rule(invoice, amountMicro).length > 0) ||
        partWithSiblings(invoice, amountMicro, siblingSums(siblings, CREATED_AT)).length > 0 ||
        typingOrigins(amountMicro).has(payable);
      fc.pre(isExplained);
      expect(holds(rangesOf(amountMicro, policy, siblings), payable), `${payable} paid as ${amountMicro}`).toBe(true);
    }),
    { numRuns: 500 },
  );
});

/** The next code word, which is nowhere further than this. */
function nextWord(policy: Policy, fromMicro: bigint): bigint {
  const maxSurchargeMicro = policy === 'tail' ? 30n : 50_000n;
  return codeWords(payableRange({ policy, maxSurchargeMicro }, microUsdt(fromMicro)))[0] ?? 0n;
}

test('on an address with a tail single amounts are looked for only where they are code words of it', () => {
  const single = (policy: Policy) => rangesOf(24_000_137n, policy).filter(({ low, high }) => low === high);
  const all = single('exact');
  for (const policy of POLICIES) expect(single(policy)).toEqual(all.filter(({ low }) => isPayable(policy, low)));
  expect(single('tail').length).toBeGreaterThan(single('tail-3').length);
  expect(all.length).toBeGreaterThan(single('tail').length);
  expect(new Set(all.map(({ low }) => low)).size).toBe(all.length);
});

test('for amounts that are not round little is looked for, and for round ones more', () => {
  const wide = (amountMicro: bigint) => rangesOf(amountMicro).filter(({ low, high }) => low !== high).length;
  // The requested amount, 8 shares, 3 places to the left, 3 fractions.
  expect(wide(25_000_137n)).toBe(15);
  expect(wide(25_000_130n)).toBe(16);
  // Six places to which it may be rounded; 7 fees, its half, three multiples.
  expect(wide(25_000_000n)).toBe(15 + 6 + 11);
  expect(wide(25_010_000n)).toBe(15 + 4 + 11);
});

test('a fixed fee is looked for both ways, and a common one also below a requested amount', () => {
  const [word = 0n] = CODE_WORDS;
  for (const feeMicro of [370_000n, 1_500_000n]) {
    expect(holds(rangesOf(word - feeMicro), word)).toBe(true);
    expect(holds(rangesOf(word + feeMicro), word)).toBe(true);
  }
  for (const feeMicro of [800_000n, 3_000_000n])
    expect(holds(rangesOf(25_000_000n - feeMicro), 25_009_999n)).toBe(true);
});

test('a share may have been deducted from a requested amount, if what is left is that round', () => {
  expect(holds(rangesOf(24_875_000n), 25_009_136n)).toBe(true);
  expect(holds(rangesOf(24_875_003n), 25_009_136n)).toBe(false);
});

test('an amount that may be a half, a third or a quarter of a round one is looked for as one', () => {
  for (const parts of [2n, 3n, 4n]) expect(holds(rangesOf(5_000_000n), 5_000_000n * parts + 9_999n)).toBe(true);
  expect(holds(rangesOf(5_000_000n), 2_509_999n)).toBe(true);
});

test('with a second transfer of the sender their sum is looked for, and as a requested amount where both are round', () => {
  const siblings = (amountMicro: bigint) => [{ amountMicro, at: unixMs(CREATED_AT - 1000) }];
  const [word = 0n] = CODE_WORDS;
  expect(holds(rangesOf(5_000_000n, 'tail', siblings(word - 5_000_000n)), word)).toBe(true);
  expect(holds(rangesOf(5_000_000n, 'tail', siblings(20_000_000n)), 25_009_999n)).toBe(true);
  expect(holds(rangesOf(5_000_000n), 25_009_999n)).toBe(false);
});

test('every range has its ends in order, above 0 and up to the largest payable amount', () => {
  const largest = 10n ** 18n + 1_000_000n;
  const amount = fc.oneof(fc.bigInt(1n, 1_000n), fc.bigInt(1n, 10n ** 10n), fc.bigInt(10n ** 17n, 10n ** 19n));
  fc.assert(
    fc.property(amount, fc.constantFrom('tail' as const, 'exact' as const), (amountMicro, policy) => {
      const ranges = rangesOf(amountMicro, policy);
      expect(ranges.length).toBeLessThan(1_000);
      for (const { low, high } of ranges) expect(1n <= low && low <= high && high <= largest).toBe(true);
    }),
  );
  expect(rangesOf(10n, 'exact').every(({ low }) => low >= 1n)).toBe(true);
  expect(rangesOf(2n ** 200n)).toEqual([]);
  expect(holds(rangesOf(10n ** 18n + 1_000_000n), largest)).toBe(true);
});
