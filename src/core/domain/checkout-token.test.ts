import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatCheckoutToken, isCheckoutToken } from './checkout-token.ts';

test('16 random bytes, whatever they are, make a token', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (random) => {
      expect(isCheckoutToken(formatCheckoutToken(random))).toBe(true);
    }),
  );
  expect(formatCheckoutToken(new Uint8Array(16))).toBe('1'.repeat(16));
  expect(formatCheckoutToken(new Uint8Array(16).fill(255))).toBe('YcVfxkQb6JRzqk5kF2tNLv');
});

test.each([15, 17, 0])('%i bytes make none', (length) => {
  expect(() => formatCheckoutToken(new Uint8Array(length))).toThrow('a checkout token needs 16 random bytes');
});

test.each([
  '',
  '1'.repeat(15),
  '1'.repeat(23),
  `${'1'.repeat(16)}\n`,
  ` ${'1'.repeat(16)}`,
  '0'.repeat(16),
  'l'.repeat(16),
])('%j can be no token', (text) => {
  expect(isCheckoutToken(text)).toBe(false);
});

test('16 to 22 characters of base58 can be one', () => {
  for (const length of [16, 22]) expect(isCheckoutToken('z'.repeat(length))).toBe(true);
});
