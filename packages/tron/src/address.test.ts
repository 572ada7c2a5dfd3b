import { hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AccountHex, accountFromHex41, accountFromWord, accountToAddress, parseAddress } from './address.ts';

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const account = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString('hex') as AccountHex);

test('every account has one address, and the address reads back as the account', () => {
  fc.assert(
    fc.property(account, (given) => {
      const address = accountToAddress(given);
      expect(parseAddress(address)).toEqual({ kind: 'ok', address, account: given });
    }),
  );
});

test('an address with one wrong character is refused', () => {
  fc.assert(
    fc.property(account, fc.nat(33), fc.nat(57), (given, position, letter) => {
      const address = accountToAddress(given);
      const wrong = address.slice(0, position) + BASE58.charAt(letter) + address.slice(position + 1);
      fc.pre(wrong !== address);
      expect(parseAddress(wrong).kind).toBe('invalid');
    }),
  );
});

test.each([
  ['', 'empty'],
  ['0xa614f803b6fd780986a42c78ec9c7f77e6ded13c', 'Ethereum-style'],
  ['41a614f803b6fd780986a42c78ec9c7f77e6ded13c', 'hexadecimal form'],
  ['TR7N0xjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'the character "0" never occurs'],
  ['x41a614f803b6fd780986a42c78ec9c7f77e6ded13c', 'the character "0" never occurs'],
  ['41a614f803b6fd780986a42c78ec9c7f77e6ded13c00', 'the character "0" never occurs'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6', '34 characters, but this text has 33'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u', 'one character is probably wrong'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL0otSzgjLj6t', 'the character "0" never occurs'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t ', 'the character " " never occurs'],
])('%j is refused with a reason that helps', (text, reason) => {
  expect(parseAddress(text)).toEqual({ kind: 'invalid', reason: expect.stringContaining(reason) });
});

test('of an address that begins with another letter only that letter is told', () => {
  expect(parseAddress('bR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t')).toEqual({
    kind: 'invalid',
    reason: 'a TRON address starts with T, but this text starts with b',
  });
});

test('an ABI word gives the last 20 bytes whatever stands before them', () => {
  const bare = '7e5f4552091a69125d5dfcb7b8c2659029395bdf';
  for (const head of ['0'.repeat(24), `${'0'.repeat(22)}41`, 'f'.repeat(24)]) {
    expect(accountFromWord(head + bare)).toBe(bare);
    expect(accountFromWord((head + bare).toUpperCase())).toBe(bare);
  }
  expect(accountFromWord(bare)).toBeNull();
  expect(accountFromWord(`${'0'.repeat(25)}${bare}`)).toBeNull();
  expect(accountFromWord(`${'0'.repeat(24)}${bare}0`)).toBeNull();
  expect(accountFromWord(`zz${'0'.repeat(62)}`)).toBeNull();
});

test('the 21-byte form needs its prefix', () => {
  expect(accountFromHex41(`42${'0'.repeat(40)}`)).toBeNull();
  expect(accountFromHex41('41')).toBeNull();
  expect(accountFromHex41(`0041${'0'.repeat(40)}`)).toBeNull();
  expect(accountFromHex41(`41${'0'.repeat(42)}`)).toBeNull();
  expect(hexToBytes(accountFromHex41(`41${'AB'.repeat(20)}`) ?? '')).toHaveLength(20);
});
