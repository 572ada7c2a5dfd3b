import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type MicroUsdt, microUsdt } from './money.ts';
import { amountAlone, codeWords, countCodeWords, dammDigit, drawCodeWords, isCodeWord, wordRange } from './policy.ts';

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
        const expected = Array.from({ length: Number(size) }, (_, index) => from + BigInt(index)).filter((micro) =>
          isCodeWord(micro),
        );
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

/** The units of the tails: of six, four and three decimals, and the surcharge limit that is usual for each. */
const TAILS = [
  { decimals: 6, unit: 1n, limit: CENT },
  { decimals: 4, unit: 100n, limit: 100_000n },
  { decimals: 3, unit: 1000n, limit: 100_000n },
] as const;

describe.each(TAILS)('at 100 % occupancy, when every code word of $decimals decimals belongs to an invoice', (tail) => {
  const { decimals, unit, limit } = tail;
  const isTaken = (micro: bigint) => isCodeWord(micro, unit);
  const paidWord = word.map((units) => units * unit);
  const never = (spoil: (paid: bigint) => bigint[]) =>
    fc.assert(fc.property(paidWord, (paid) => spoil(paid).every((seen) => seen === paid || !isTaken(seen))));

  test('a payment with one wrong digit never equals another invoice’s payable amount', () => never(misreadings));

  test('a payment with two neighbouring digits swapped never does', () => never(swaps));

  test('a payment rounded or truncated to fewer decimals never does', () => never(roundings));

  test('a payment rounded or truncated to as many decimals as the tail has, or more, is the payment itself', () => {
    fc.assert(
      fc.property(paidWord, (paid) => {
        const own = [10n, 100n, 1000n].filter((place) => place <= unit);
        expect(own.map((place) => ((paid + place / 2n) / place) * place)).toEqual(own.map(() => paid));
      }),
    );
  });

  test('the requested amount itself, sent without the tail, never does when it has fewer decimals than the tail', () => {
    fc.assert(fc.property(fc.bigInt(1n, MAX_MICRO / 10n), (amount) => !isTaken(amount * 10n * unit)));
  });

  test('a payment with the decimal point forgotten, or 1 … 5 places too far right, never does', () => {
    expect(pointMovedRight(25_000_137n).at(-1)).toBe(25_000_137_000_000n);
    never(pointMovedRight);
  });

  test('a payment with the point one place too far left, cut to what the payer can send, never does', () =>
    never((paid) => [paid / 10n, (paid / 10n / unit) * unit]));

  test('a payment with a digit after the point left out never does', () => {
    expect(decimalsLeftOut(25_000_937n)).toContain(25_009_370n);
    never(decimalsLeftOut);
  });

  test('a payment with its first digit left out, or a digit typed before it, never does', () => {
    expect(firstDigitAddedOrLeftOut(25_000_137n)).toEqual(
      expect.arrayContaining([125_000_137n, 925_000_137n, 5_000_137n]),
    );
    never(firstDigitAddedOrLeftOut);
  });

  test('a payment that is one micro-USDT or one of its last decimal more or less never does', () =>
    never((paid) => [paid + 1n, paid - 1n, paid + unit, paid - unit]));

  test('no slip of any invoice lands on a reserved amount of two addresses that are full for six prices', () => {
    const prices = [9_990_000n, 10_000_000n, 25_000_000n, 99_990_000n, 100_000_000n, 1_000_000_000n].map(microUsdt);
    const addresses = [1, 2].map(() => prices.flatMap((price) => codeWords(wordRange(price, limit, unit))));
    // 9.99 begins in the midst of a tenth, of which it has one word less.
    const each = { 6: 5400, 4: 540, 3: 53 }[decimals];
    expect(addresses.map((words) => words.length)).toEqual([each, each]);
    // Whichever of the two addresses it is sent to.
    const reserved = new Set<bigint>(addresses.flat());
    expectNoHit(reserved, unit);
  });

  test('where prices lie less than a slip apart, no slip of any of their words lands on a reserved amount either', () => {
    // Every tenth of a cent from 9.98 to 10.01, so that one price ends where the next begins and digits carry.
    const prices = Array.from({ length: 31 }, (_, index) => microUsdt(9_980_000n + BigInt(index) * 1000n));
    const reserved = new Set<bigint>(prices.flatMap((price) => codeWords(wordRange(price, limit, unit))));
    expect(reserved.size).toBeGreaterThan({ 6: 3000, 4: 100, 3: 9 }[decimals]);
    expectNoHit(reserved, unit);
  });

  test('of all words in 2 USDT, no slip of one is another', () => {
    const range = wordRange(microUsdt(9_000_000n), unit === 1n ? 100_000n : 2_000_000n, unit);
    expectNoHit(new Set<bigint>(codeWords(range)), unit);
  });
});

function expectNoHit(reserved: ReadonlySet<bigint>, unit: bigint): void {
  for (const each of reserved) {
    const hit = [...slips(each), each + unit, each - unit].find((slip) => reserved.has(slip));
    if (hit !== undefined) expect.fail(`a slip of ${each} is ${hit}, the amount of another invoice`);
  }
}

test('a word of six decimals, rounded, may be one of four or three: so an address keeps its tail for life', () => {
  const rounded = (micro: bigint, place: bigint) => ((micro + place / 2n) / place) * place;
  for (const unit of [100n, 1000n]) {
    const words = codeWords(wordRange(microUsdt(25_000_000n), 100_000n));
    expect(words.some((each) => isCodeWord(rounded(each, unit), unit))).toBe(true);
  }
});

describe('tails of fewer decimals', () => {
  test('the first words for 25.00 are 25.0007, 25.0029 and 25.0032, and 25.001, 25.017 and 25.025', () => {
    const first = (unit: bigint) => codeWords(wordRange(microUsdt(25_000_000n), 100_000n, unit)).slice(0, 3);
    expect(first(100n)).toEqual([25_000_700n, 25_002_900n, 25_003_200n]);
    expect(first(1000n)).toEqual([25_001_000n, 25_017_000n, 25_025_000n]);
  });

  test('words, their number and what is drawn are those of the range, however fine the requested amount is', () => {
    const given = { from: requested, unit: fc.constantFrom(1n, 100n, 1000n), size: fc.bigInt(1n, 300_000n) };
    fc.assert(
      fc.property(fc.record(given), fc.nat(), ({ from, unit, size }, seed) => {
        const range = wordRange(from, unit === 1n ? (size % 3000n) + 1n : size, unit);
        const firstMultiple = ((range.fromMicro + unit - 1n) / unit) * unit;
        const expected: bigint[] = [];
        for (let micro = firstMultiple; micro < range.belowMicro; micro += unit) {
          if (micro % (unit * 10n) !== 0n && dammDigit(micro) === 0) expected.push(micro);
        }
        expect(codeWords(range)).toEqual(expected);
        expect(countCodeWords(range)).toBe(BigInt(expected.length));
        const drawn = drawCodeWords(range, 8, (n) => seed % n);
        expect(drawn.every((each) => expected.includes(each))).toBe(true);
      }),
      { numRuns: 100 },
    );
  });

  test('each of the words can be drawn', () => {
    const range = wordRange(microUsdt(25_000_000n), 100_000n, 1000n);
    let next = 0;
    const drawn = drawCodeWords(range, 100, (n) => next++ % n);
    expect(drawn.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(codeWords(range));
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
    const isEmpty = codeWords(wordRange(microUsdt(25_000_010n), 3n)).length === 0;
    expect(isEmpty).toBe(true);
    expect(drawCodeWords(wordRange(microUsdt(25_000_010n), 3n), 8, randomBelow(1))).toEqual([]);
  });
});

describe('countCodeWords', () => {
  test('counts as many as there are, in ranges of every width and place', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 18n), fc.bigInt(0n, 3000n), (fromMicro, width) => {
        const range = wordRange(microUsdt(fromMicro), width);
        expect(countCodeWords(range)).toBe(BigInt(codeWords(range).length));
      }),
    );
  });

  test('counts 900 for a cent of surcharge, and 9 in the narrowest range', () => {
    expect(countCodeWords(wordRange(microUsdt(25_000_000n), CENT))).toBe(900n);
    expect(countCodeWords(wordRange(microUsdt(25_000_000n), 100n))).toBe(9n);
  });
});

test('the range of one amount holds it alone, if it is a code word', () => {
  expect(codeWords(wordRange(microUsdt(25_000_000n), 20n)).flatMap((word) => codeWords(amountAlone(word)))).toEqual(
    codeWords(wordRange(microUsdt(25_000_000n), 20n)),
  );
  expect(amountAlone(microUsdt(25_000_000n))).toEqual({
    fromMicro: 25_000_000n,
    belowMicro: 25_000_001n,
    unitMicro: 1n,
  });
});
