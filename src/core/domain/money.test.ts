import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asSum, formatAmount, microUsdt, parseAmount } from './money.ts';

const PATTERN = /^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$/;

/** Amounts as text: an integer part, then up to six decimals or none. */
const amountText = fc
  .tuple(fc.bigInt(0n, 999_999_999_999n), fc.option(fc.stringMatching(/^[0-9]{1,6}$/), { nil: null }))
  .map(([integer, fraction]) => (fraction === null ? `${integer}` : `${integer}.${fraction}`));

describe('parseAmount', () => {
  test('accepts exactly what the pattern allows and is greater than 0', () => {
    const nearly = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...'0123456789..+-eE_ ,\n٣５') }),
      fc.stringMatching(/^[0-9]{0,14}\.?[0-9]{0,8}$/),
      amountText,
    );
    fc.assert(
      fc.property(nearly, (text) => {
        const isPositive = /[1-9]/.test(text);
        expect(parseAmount(text).kind).toBe(PATTERN.test(text) && isPositive ? 'ok' : 'invalid');
      }),
      { numRuns: 2000 },
    );
  });

  test('reads the exact value, without floating point', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 999_999_999_999_999_999n), (micro) => {
        const text = `${micro / 1_000_000n}.${(micro % 1_000_000n).toString().padStart(6, '0')}`;
        expect(parseAmount(text)).toEqual({ kind: 'ok', amountMicro: micro });
      }),
    );
  });

  test('equal values are equal, however many zeros they end in', () => {
    for (const text of ['10', '10.0', '10.00', '10.000000']) {
      expect(parseAmount(text)).toEqual({ kind: 'ok', amountMicro: 10_000_000n });
    }
  });

  test.each([
    ['', 'EMPTY', 'must not be empty; send a decimal string such as "25.00"'],
    [' 1', 'WHITESPACE', 'must not contain whitespace'],
    ['1\u2003', 'WHITESPACE', 'must not contain whitespace'],
    ['+1', 'SIGN', 'must not have a sign'],
    ['-1', 'SIGN', 'must not have a sign'],
    ['1-1', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['1e6', 'EXPONENT', 'must not have an exponent'],
    ['1.5E1', 'EXPONENT', 'must not have an exponent'],
    ['.5e1', 'EXPONENT', 'must not have an exponent'],
    ['x1e6', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['e6', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['1,5', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['５', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['1x', 'NOT_DECIMAL', 'must contain only the digits 0-9 and one decimal point "."'],
    ['1.2.3', 'NOT_DECIMAL', 'must have at most one decimal point'],
    ['.5', 'NO_INTEGER_PART', 'needs a digit before the point: "0.5"'],
    [`.${'5'.repeat(19)}`, 'NO_INTEGER_PART', `needs a digit before the point: "0.${'5'.repeat(19)}"`],
    [`.${'5'.repeat(20)}`, 'NO_INTEGER_PART', `needs a digit before the point: "0.${'5'.repeat(19)}…"`],
    ['5.', 'NO_FRACTION', 'must have a digit after the decimal point; add one or remove the point'],
    ['007', 'LEADING_ZERO', 'must not have leading zeros'],
    ['00.5', 'LEADING_ZERO', 'must not have leading zeros'],
    ['100000000000001', 'TOO_LARGE', 'must have at most 12 digits before the point'],
    ['0.0000001', 'TOO_PRECISE', 'must have at most 6 decimals, the precision of USDT'],
    ['1000000000000', 'TOO_LARGE', 'must have at most 12 digits before the point'],
    ['1000000000000.000001', 'TOO_LARGE', 'must have at most 12 digits before the point'],
    ['0', 'NOT_POSITIVE', 'must be greater than 0'],
    ['0.000000', 'NOT_POSITIVE', 'must be greater than 0'],
  ])('%j is refused as %s', (text, code, reason) => {
    expect(parseAmount(text)).toEqual({ kind: 'invalid', code, reason });
  });

  test('every refusal has a short reason', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 2000 }), (text) => {
        const parsed = parseAmount(text);
        if (parsed.kind === 'ok') return;
        expect(parsed.reason.length).toBeGreaterThan(5);
        expect(parsed.reason.length).toBeLessThan(120);
      }),
    );
  });
});

describe('formatAmount', () => {
  test('is read back as the same amount, always with six decimals', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 999_999_999_999_999_999n), (micro) => {
        const text = formatAmount(microUsdt(micro));
        expect(text).toMatch(/^(0|[1-9][0-9]*)\.[0-9]{6}$/);
        expect(parseAmount(text)).toEqual({ kind: 'ok', amountMicro: micro });
      }),
    );
  });

  test('writes zero, the smallest amount, and more than a token holds', () => {
    expect(formatAmount(microUsdt(0n))).toBe('0.000000');
    expect(formatAmount(microUsdt(1n))).toBe('0.000001');
    expect(formatAmount(microUsdt(2n ** 256n - 1n))).toMatch(/^\d{72}\.\d{6}$/);
  });
});

test('microUsdt refuses a negative amount', () => {
  expect(() => microUsdt(-1n)).toThrow('an amount of micro-USDT must not be negative, got -1');
  expect(microUsdt(0n)).toBe(0n);
});

test.each([
  ['0.000000', '0.000000'],
  ['999.000001', '999.000001'],
  ['1234567.500000', '1,234,567.500000'],
  ['-1234.123456', '-1,234.123456'],
  ['-123.000000', '-123.000000'],
  ['10850', '10,850'],
])('as a sum %s is written %s', (amount, sum) => {
  expect(asSum(amount)).toBe(sum);
});
