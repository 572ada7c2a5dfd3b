import { describe, expect, test } from 'vitest';
import { SCENARIOS } from './scenarios.ts';

const amountOf = (name: 'fee' | 'rounded' | 'typo' | 'swapped', payable: bigint) => SCENARIOS[name].amountOf?.(payable);

describe('the amounts that people send by mistake', () => {
  test.each([
    [25_000_014n, 24_000_014n],
    [1_000_001n, 1n],
    [1_000_000n, 500_000n],
    [5n, 2n],
    [1n, null],
  ])('%d less a fee is %s', (amount, left) => expect(amountOf('fee', amount)).toBe(left));

  test.each([
    ['to cents', 25_000_014n, 25_000_000n],
    ['up to cents', 25_009_994n, 25_010_000n],
    ['to one decimal where two change nothing', 25_340_000n, 25_300_000n],
    ['to whole USDT where decimals change nothing', 25_500_000n, 26_000_000n],
    ['to more decimals where cents would be nothing', 4_003n, 4_000n],
    ['to the last decimal but one', 9n, 10n],
    ['not at all where there is nothing to round', 25_000_000n, null],
    ['not at all where nothing would be left', 1n, null],
  ])('an amount is rounded %s', (_how, amount, result) => expect(amountOf('rounded', amount)).toBe(result));

  test.each([
    [25_000_014n, 25_000_015n],
    [25_000_009n, 25_000_008n],
    [25_000_000n, 26_000_000n],
    [9n, 8n],
  ])('%d with one digit wrong is %d', (amount, result) => expect(amountOf('typo', amount)).toBe(result));

  test.each([
    [25_000_014n, 25_000_041n],
    [25_000_011n, 25_000_101n],
    [25_000_000n, 52_000_000n],
    [7_000_000n, null],
    [1_111_111n, null],
  ])('%d with neighbouring digits swapped is %s', (amount, result) => expect(amountOf('swapped', amount)).toBe(result));
});
