import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  amountAlone,
  codeWords,
  countCodeWords,
  dammDigit,
  drawCodeWords,
  isCodeWord,
  wordRange,
} from './code-word.ts';
import { type MicroUsdt, microUsdt } from './money.ts';

const CENT = 10_000n;
const MAX_MICRO = 999_999_999_999_999_999n;

/** Amounts of every magnitude, and the surcharges that a project may have. */
const requested = fc.bigInt(0n, 18n).chain((magnitude) => fc.bigInt(1n, 10n ** magnitude).map(microUsdt));
const surcharge = fc.bigInt(100n, 1_000_000n);
/** A random code word of any magnitude. */
const word = fc.bigInt(1n, MAX_MICRO / 10n).map(nextWord);

function nextWord(from: bigint): MicroUsdt {
  for (let prefix = from; ; prefix++) {
    const candidate = prefix * 10n + BigInt(dammDigit(prefix));
    if (isCodeWord(candidate)) return microUsdt(candidate);
  }
}

/** The digits of an amount as people see them: at least `0.000000`. */
const digitsOf = (micro: bigint) => micro.toString().padStart(7, '0');

/** Every amount that is this one with one wrong digit. */
function misreadings(micro: bigint): bigint[] {
  const digits = digitsOf(micro);
  return [...digits].flatMap((digit, at) =>
    [...'0123456789']
      .filter((other) => other !== digit)
      .map((other) => BigInt(digits.slice(0, at) + other + digits.slice(at + 1))),
  );
}

/** Every other amount that is this one with two neighbouring digits swapped. */
function swaps(micro: bigint): bigint[] {
  const digits = digitsOf(micro);
  return Array.from({ length: digits.length - 1 }, (_, at) =>
    BigInt(digits.slice(0, at) + digits[at + 1] + digits[at] + digits.slice(at + 2)),
  ).filter((swapped) => swapped !== micro);
}

/** This amount rounded half up, rounded up, and truncated, to 0 … 5 decimals. */
function roundings(micro: bigint): bigint[] {
  return [10n, 100n, 1000n, 10_000n, 100_000n, 1_000_000n].flatMap((unit) => {
    const down = (micro / unit) * unit;
    return [down, down + unit, ((micro + unit / 2n) / unit) * unit];
  });
}

/** This amount with the decimal point 1 … 6 places too far right; six places is the point forgotten. */
function pointMovedRight(micro: bigint): bigint[] {
  return [1n, 2n, 3n, 4n, 5n, 6n].map((places) => micro * 10n ** places);
}

/** This amount with one digit after the point left out. */
function decimalsLeftOut(micro: bigint): bigint[] {
  const digits = digitsOf(micro);
  return Array.from({ length: 6 }, (_, index) => {
    const at = digits.length - 1 - index;
    return BigInt(`${digits.slice(0, at)}${digits.slice(at + 1)}0`);
  });
}

/** This amount with a digit typed before the first one, and with its first digit left out unless that is a 0, which changes nothing. */
function firstDigitAddedOrLeftOut(micro: bigint): bigint[] {
  const digits = digitsOf(micro);
  const added = [...'123456789'].map((digit) => BigInt(digit + digits));
  return digits.startsWith('0') ? added : [...added, BigInt(digits.slice(1))];
}

/** Every slip that a code word is proven against, without those that change nothing. */
function slips(micro: bigint): bigint[] {
  return [
    ...misreadings(micro),
    ...swaps(micro),
    ...roundings(micro),
    ...pointMovedRight(micro),
    ...[micro / 10n, micro + 1n, micro - 1n],
    ...decimalsLeftOut(micro),
    ...firstDigitAddedOrLeftOut(micro),
  ].filter((slip) => slip !== micro);
}

describe('Damm', () => {
  test('gives the published check digit: 572 → 4', () => {
    expect(dammDigit(572n)).toBe(4);
    expect(dammDigit(5724n)).toBe(0);
  });

  test('every number has exactly one check digit', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, MAX_MICRO), (value) => {
        const valid = [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n].filter((digit) => dammDigit(value * 10n + digit) === 0);
        expect(valid).toEqual([BigInt(dammDigit(value))]);
      }),
    );
  });

  test('leading zeros change nothing, so a digit misread as a leading zero is found as well', () => {
    expect(dammDigit(0n)).toBe(0);
  });
});

describe('code words', () => {
  test('the first words for 25.00 are 25.000009, 25.000014 and 25.000023', () => {
    const words = codeWords(wordRange(microUsdt(25_000_000n), CENT));
    expect(words.slice(0, 3)).toEqual([25_000_009n, 25_000_014n, 25_000_023n]);
  });

  test('a cent of surcharge holds 900 words', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, MAX_MICRO / CENT - 1n), (cents) => {
        expect(codeWords(wordRange(microUsdt(cents * CENT), CENT))).toHaveLength(900);
      }),
      { numRuns: 30 },
    );
  });

  test('codeWords lists exactly the code words of a range, in ascending order', () => {
    fc.assert(
      fc.property(requested, fc.bigInt(1n, 3000n), (from, size) => {
        const expected = Array.from({ length: Number(size) }, (_, index) => from + BigInt(index)).filter(isCodeWord);
        expect(codeWords(wordRange(from, size))).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  test('every word is at least the requested amount and less than the surcharge above it', () => {
    fc.assert(
      fc.property(requested, surcharge, (amount, maxSurcharge) => {
        const words = codeWords(wordRange(amount, maxSurcharge));
        expect(words.every((each) => each >= amount && each < amount + maxSurcharge)).toBe(true);
        expect(words.length).toBeGreaterThan(0);
      }),
      { numRuns: 20 },
    );
  });
});

describe('at 100 % occupancy, when every code word there is belongs to an invoice', () => {
  test('a payment with one wrong digit never equals another invoice’s payable amount', () => {
    fc.assert(fc.property(word, (paid) => misreadings(paid).every((seen) => !isCodeWord(seen))));
  });

  test('a payment with two neighbouring digits swapped never does', () => {
    fc.assert(fc.property(word, (paid) => swaps(paid).every((seen) => !isCodeWord(seen))));
  });

  test('a payment rounded or truncated to fewer decimals never does', () => {
    fc.assert(fc.property(word, (paid) => roundings(paid).every((seen) => !isCodeWord(seen))));
  });

  test('the requested amount itself, sent without the tail, never does when it has fewer than six decimals', () => {
    fc.assert(fc.property(fc.bigInt(1n, MAX_MICRO / 10n), (amount) => !isCodeWord(amount * 10n)));
  });

  test('a payment with the decimal point forgotten, or 1 … 5 places too far right, never does', () => {
    expect(pointMovedRight(25_000_137n).at(-1)).toBe(25_000_137_000_000n);
    fc.assert(fc.property(word, (paid) => pointMovedRight(paid).every((seen) => !isCodeWord(seen))));
  });

  test('a payment with the point one place too far left, cut to six decimals, never does', () => {
    fc.assert(fc.property(word, (paid) => !isCodeWord(paid / 10n)));
  });

  test('a payment with a digit after the point left out never does', () => {
    expect(decimalsLeftOut(25_000_937n)).toContain(25_009_370n);
    fc.assert(fc.property(word, (paid) => decimalsLeftOut(paid).every((seen) => !isCodeWord(seen))));
  });

  test('a payment with its first digit left out, or a digit typed before it, never does', () => {
    expect(firstDigitAddedOrLeftOut(25_000_137n)).toEqual(
      expect.arrayContaining([125_000_137n, 925_000_137n, 5_000_137n]),
    );
    fc.assert(fc.property(word, (paid) => firstDigitAddedOrLeftOut(paid).every((seen) => !isCodeWord(seen))));
  });

  test('a payment that is one micro-USDT more or less never does', () => {
    fc.assert(fc.property(word, (paid) => !isCodeWord(paid + 1n) && !isCodeWord(paid - 1n)));
  });

  test('no slip of any invoice lands on a reserved amount of two addresses that are full for six prices', () => {
    const prices = [9_990_000n, 10_000_000n, 25_000_000n, 99_990_000n, 100_000_000n, 1_000_000_000n].map(microUsdt);
    const addresses = [1, 2].map(() => prices.flatMap((price) => codeWords(wordRange(price, CENT))));
    expect(addresses.map((words) => words.length)).toEqual([5400, 5400]);
    // Whichever of the two addresses it is sent to.
    const reserved = new Set<bigint>(addresses.flat());
    for (const words of addresses) {
      for (const each of words) {
        const hit = slips(each).find((slip) => reserved.has(slip));
        if (hit !== undefined) expect.fail(`a slip of ${each} is ${hit}, the amount of another invoice`);
      }
    }
  });

  test('where prices lie less than a slip apart, no slip of any of their words lands on a reserved amount either', () => {
    // Every tenth of a cent from 9.98 to 10.01, so that one price ends where the next begins and digits carry.
    const prices = Array.from({ length: 31 }, (_, index) => microUsdt(9_980_000n + BigInt(index) * 1000n));
    const reserved = new Set<bigint>(prices.flatMap((price) => codeWords(wordRange(price, CENT))));
    expect(reserved.size).toBeGreaterThan(3000);
    for (const each of reserved) {
      const hit = slips(each).find((slip) => reserved.has(slip));
      if (hit !== undefined) expect.fail(`a slip of ${each} is ${hit}, the amount of another invoice`);
    }
  });
});

describe('drawCodeWords', () => {
  const randomBelow = (seed: number) => {
    let state = seed >>> 0;
    return (n: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
  };

  test('draws different words of the range, at most as many as asked', () => {
    fc.assert(
      fc.property(requested, surcharge, fc.integer({ min: 0, max: 64 }), fc.nat(), (from, size, count, seed) => {
        const range = wordRange(from, size);
        const drawn = drawCodeWords(range, count, randomBelow(seed));
        expect(drawn.length).toBeLessThanOrEqual(count);
        expect(new Set(drawn).size).toBe(drawn.length);
        expect(drawn.every((each) => isCodeWord(each) && each >= from && each < from + size)).toBe(true);
      }),
    );
  });

  test('asks for random integers of the whole range, so that each of its words can come', () => {
    const range = wordRange(microUsdt(25_000_000n), CENT);
    const bounds = new Set<number>();
    let next = 0;
    const drawn = drawCodeWords(range, 1000, (n) => {
      bounds.add(n);
      return next++ % n;
    });
    expect([...bounds]).toEqual([1000]);
    expect(drawn.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(codeWords(range));
  });

  test('fills the eight that a first attempt needs nearly always', () => {
    const range = wordRange(microUsdt(25_000_000n), CENT);
    const short = Array.from({ length: 500 }, (_, seed) => drawCodeWords(range, 8, randomBelow(seed * 7919)).length);
    expect(short.filter((length) => length < 8).length).toBeLessThan(5);
  });

  test('ends although a broken source of randomness repeats itself', () => {
    const range = wordRange(microUsdt(25_000_000n), CENT);
    expect(drawCodeWords(range, 8, () => 0)).toEqual([25_000_009n]);
    const isEmpty = codeWords({ fromMicro: 25_000_010n, belowMicro: 25_000_013n }).length === 0;
    expect(isEmpty).toBe(true);
    expect(drawCodeWords({ fromMicro: 25_000_010n, belowMicro: 25_000_013n }, 8, randomBelow(1))).toEqual([]);
  });
});

describe('countCodeWords', () => {
  test('counts as many as there are, in ranges of every width and place', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 18n), fc.bigInt(0n, 3000n), (fromMicro, width) => {
        const range = { fromMicro, belowMicro: fromMicro + width };
        expect(countCodeWords(range)).toBe(BigInt(codeWords(range).length));
      }),
    );
  });

  test('counts 900 for a cent of surcharge, and 9 in the narrowest range', () => {
    expect(countCodeWords({ fromMicro: 25_000_000n, belowMicro: 25_010_000n })).toBe(900n);
    expect(countCodeWords({ fromMicro: 25_000_000n, belowMicro: 25_000_100n })).toBe(9n);
  });
});

test('the range of one amount holds it alone, if it is a code word', () => {
  expect(codeWords(wordRange(microUsdt(25_000_000n), 20n)).flatMap((word) => codeWords(amountAlone(word)))).toEqual(
    codeWords(wordRange(microUsdt(25_000_000n), 20n)),
  );
  expect(amountAlone(microUsdt(25_000_000n))).toEqual({ fromMicro: 25_000_000n, belowMicro: 25_000_001n });
});
