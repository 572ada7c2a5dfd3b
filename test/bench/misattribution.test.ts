import { describe, expect, test } from 'vitest';
import { createRandomStream } from '../../bench/ingest/random-stream.ts';
import { measure } from '../../bench/misattribution/measure.ts';
import { MISTAKES } from '../../bench/misattribution/mistakes.ts';
import { countSameTails } from '../../bench/misattribution/same-tails.ts';
import { reserve, type Scheme } from '../../bench/misattribution/schemes.ts';

/** Prices that differ by a fee, a half, a cent or a digit. */
const PRICES = [499n, 950n, 999n, 1000n, 1999n, 2000n, 2400n, 2500n, 10_000n].map((cents) => cents * 10_000n);

function tallies(scheme: Scheme, perPrice: number) {
  const random = createRandomStream(1);
  return measure(reserve(scheme, PRICES, perPrice, random), random);
}

function arrivedAfter(name: string, amount: bigint, decimals = 6): bigint[] {
  const mistake = MISTAKES.find((each) => each.name === name);
  if (mistake === undefined) throw new Error(`there is no mistake ${name}`);
  return mistake.of({ amount, decimals }, createRandomStream(1));
}

describe('the table of payer mistakes', () => {
  test.each([
    ['tail', 900],
    ['tail-4', 90],
    ['tail-3', 8],
  ] as const)('with every code word of %s taken, no mistake that is called excluded hits another', (scheme, each) => {
    const excluded = tallies(scheme, 900).filter(({ isExcluded }) => isExcluded);
    expect(excluded.length).toBeGreaterThan(8);
    for (const { name, hits, cases } of excluded) {
      expect.soft(hits, name).toBe(0);
      // Prices within 0.1 of each other (4.99 and 9.99, 10, 19.99 and 20) share code words of the coarser tails.
      expect.soft(cases, name).toBeGreaterThan((PRICES.length - 2) * each - 1);
    }
  });

  test('the same mistakes do hit other invoices where amounts are consecutive', () => {
    const cents = new Map(tallies('steps of 0.01', 20).map((tally) => [tally.name, tally.hits]));
    const micro = new Map(tallies('steps of 0.000001', 900).map((tally) => [tally.name, tally.hits]));
    for (const name of ['one wrong digit', 'neighbouring digits swapped', 'truncated to 0 … 5 decimals']) {
      expect.soft(cents.get(name), name).toBeGreaterThan(0);
      expect.soft(micro.get(name), name).toBeGreaterThan(0);
    }
  });

  test('each scheme gives as many different amounts as there are invoices, none below its price', () => {
    for (const scheme of ['tail', 'steps of 0.01', 'steps of 0.000001'] as const) {
      const { amounts, taken } = reserve(scheme, PRICES, 20, createRandomStream(1));
      expect(amounts).toHaveLength(PRICES.length * 20);
      expect(taken.size).toBe(amounts.length);
    }
  });

  test('two wrong digits are two: of eight places, by any other digit', () => {
    const digits = (amount: bigint) => [...amount.toString().padStart(8, '0')];
    const right = digits(25_000_137n);
    for (const arrived of arrivedAfter('two wrong digits', 25_000_137n)) {
      expect(digits(arrived).filter((digit, at) => digit !== right[at])).toHaveLength(2);
    }
  });

  test('prices that differ in one digit only never have the same tails: 1.00 apart, only those with a carry can', () => {
    const [apart] = countSameTails(['1']);
    // A carry needs a multiple of ten plus some cents: one price in ten.
    expect(apart?.same).toBeLessThan((apart?.pairs ?? 0) / 10);
    expect(apart?.same).toBeGreaterThan(0);
  });
});
