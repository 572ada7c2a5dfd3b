import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { suspectOf } from '../../../../test/support/mismatch-suspect.ts';
import { exactly } from './finding.ts';
import { typingError, typingOrigins } from './typing-errors.ts';

const microOf = (text: string) => BigInt(text.replace('.', ''));
/** What is made of an original by typing is read as an amount: six decimals are left of it. */
const arrivedOf = (typed: string) => {
  const [integer = '', fraction = ''] = typed.split('.');
  return BigInt((integer === '' ? '0' : integer) + fraction.padEnd(6, '0').slice(0, 6));
};

const original = fc.bigInt(1n, 10n ** 12n).map(exactly);
const CODES = ['ONE_DIGIT_WRONG', 'DIGITS_SWAPPED', 'DIGIT_MISSING', 'DIGIT_ADDED'];

/** The slip that leads from one amount to another; those of an earlier kind are told first. */
function expectFound(from: string, typed: string, code: string): void {
  const arrived = arrivedOf(typed);
  // A wallet shows no zero before other digits, and so nobody leaves it or adds it.
  fc.pre(!/^(?:0[0-9]|\.)/.test(typed));
  fc.pre(arrived > 0n && arrived !== microOf(from));
  const found = typingOrigins(arrived).get(microOf(from));
  expect(found, `${typed} for ${from}`).toBeDefined();
  expect(CODES.indexOf(found?.code ?? '')).toBeLessThanOrEqual(CODES.indexOf(code));
  expect(CODES.indexOf(found?.code ?? '')).toBeGreaterThanOrEqual(0);
}

describe('every slip of typing is found from what arrived', () => {
  const digit = fc.nat(9).map(String);
  const at = fc.nat(30);

  test('one digit wrong', () => {
    fc.assert(
      fc.property(original, at, digit, (from, place, typed) => {
        const index = place % from.length;
        fc.pre(from[index] !== '.' && from[index] !== typed);
        const wrong = from.slice(0, index) + typed + from.slice(index + 1);
        fc.pre(microOf(wrong) > 0n);
        const text = exactly(microOf(wrong));
        fc.pre(text.length === from.length);
        const point = from.indexOf('.');
        const where = index > point ? `at decimal ${index - point}` : `at digit ${point - index} before the point`;
        expect(typingOrigins(microOf(wrong)).get(microOf(from))).toEqual({
          code: 'ONE_DIGIT_WRONG',
          ways: 1,
          places: (from.length - 1) * 9,
          detail: `one digit wrong: ${typed} instead of ${from[index]} ${where}`,
          evidence: { typed, expected: from[index], place: where },
        });
      }),
    );
  });

  test('two neighbours swapped, also across the point', () => {
    fc.assert(
      fc.property(original, at, (from, place) => {
        const digits = from.replace('.', '');
        const index = place % (digits.length - 1);
        const [left = '', right = ''] = [digits[index], digits[index + 1]];
        fc.pre(left !== right && !(index === 0 && right === '0' && digits.length > 7));
        const swapped = digits.slice(0, index) + right + left + digits.slice(index + 2);
        expect(typingOrigins(BigInt(swapped)).get(BigInt(digits))).toEqual({
          code: 'DIGITS_SWAPPED',
          ways: 1,
          places: digits.length - 1,
          detail: `two neighbouring digits swapped: ${right}${left} instead of ${left}${right}`,
          evidence: { typed: `${right}${left}`, expected: `${left}${right}` },
        });
      }),
    );
  });

  test('a digit left out', () => {
    fc.assert(
      fc.property(original, at, (from, place) => {
        const index = place % from.length;
        // The last decimal is cut off then, which is another slip.
        fc.pre(from[index] !== '.' && index < from.length - 1);
        expectFound(from, from.slice(0, index) + from.slice(index + 1), 'DIGIT_MISSING');
      }),
    );
  });

  test('a digit too many', () => {
    fc.assert(
      fc.property(original, at, digit, (from, place, added) => {
        const index = place % from.length;
        expectFound(from, from.slice(0, index) + added + from.slice(index), 'DIGIT_ADDED');
      }),
    );
  });

  test('and nothing else: not what arrived itself, nothing, or an amount with a zero before it', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 12n), (arrived) => {
        const origins = [...typingOrigins(arrived).keys()];
        expect(origins).not.toContain(arrived);
        expect(origins.every((micro) => micro > 0n)).toBe(true);
        const length = exactly(arrived).length;
        expect(origins.every((micro) => Math.abs(exactly(micro).length - length) <= 1)).toBe(true);
      }),
    );
  });
});

test('of each slip as many are found as there are', () => {
  const count = (amountMicro: bigint) => {
    const codes = [...typingOrigins(amountMicro).values()].map(({ code }) => code);
    return CODES.map((code) => codes.filter((each) => each === code).length);
  };
  // 25.000137: 8 digits, less 05; 5 pairs that differ; 29 digits left out in 3 places, of which a 2 and a 5 come twice; a digit too
  // many before the point in 2 places, and behind it 10 ways to lose a seventh decimal after each of 0, 1 and 3, less 73 and 77.
  expect(count(25_000_137n)).toEqual([71, 5, 27, 30]);
  // Of an amount below 1 the 0 before the point is none too many, and behind it no digit was left out.
  expect(count(137n)).toEqual([63, 3, 9, 28]);
});

test('a digit behind the point that was left out moves none before it', () => {
  const origins = typingOrigins(12_500_000n);
  expect(origins.get(12_750_000n)).toMatchObject({ code: 'DIGIT_MISSING', evidence: { missing: '7' } });
  expect(origins.has(17_250_000n)).toBe(false);
});

test('0.000001 may be another digit, or one that was left out, and never nothing', () => {
  const origins = typingOrigins(1n);
  expect(origins.has(0n)).toBe(false);
  expect(origins.get(1_000_001n)).toMatchObject({ code: 'ONE_DIGIT_WRONG' });
  expect(origins.get(10_000_001n)).toMatchObject({ code: 'DIGIT_MISSING', ways: 1 });
});

test.each([
  [25_000_187n, 25_000_137n, 0.1 / 72, 'one digit wrong: 8 instead of 3 at decimal 5'],
  [52_000_137n, 25_000_137n, 0.05 / 7, 'two neighbouring digits swapped: 52 instead of 25'],
  [5_000_137n, 25_000_137n, 0.03 / 8, 'a 2 left out'],
  [25_000_137n, 255_000_137n, (0.03 * 2) / 9, 'a 5 left out'],
  [25_023_450n, 25_012_345n, 0.03 / 9, 'a 1 left out'],
  [275_000_137n, 25_000_137n, 0.02 / 200, 'an extra 7'],
  [255_000_137n, 25_000_137n, (0.02 * 2) / 20, 'a 5 typed twice'],
  [25_008_017n, 25_008_172n, (0.02 * 0.3) / 180, 'an extra 0: 25.0080172, truncated to six decimals'],
  [25_001_123n, 25_001_234n, (0.02 * 0.3 * 2) / 18, 'a 1 typed twice: 25.0011234, truncated to six decimals'],
] as const)('%i for %i is weighed by the ways and the places of the slip', (arrived, payable, weight, detail) => {
  const origin = typingOrigins(arrived).get(payable);
  if (origin === undefined) throw new Error('no slip was found');
  const slip = typingError(suspectOf(25_000_000n, payable), arrived, origin);
  expect(slip.weight).toBeCloseTo(weight, 12);
  expect(slip).toMatchObject({ code: origin.code, evidence: origin.evidence });
  expect(slip.explanation).toBe(
    `${exactly(arrived)} arrived: this is invoice order-1's ${exactly(payable)} with ${detail}`,
  );
  expect(slip).not.toHaveProperty('atMost');
});

test.each([
  [25_023_450n, 25_012_345n, { missing: '1' }],
  [275_000_137n, 25_000_137n, { added: '7' }],
])('the evidence of %i for %i names the digit', (arrived, payable, evidence) => {
  expect(typingOrigins(arrived).get(payable)?.evidence).toEqual(evidence);
});
