import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  bytesField,
  int64Field,
  readMessage,
  repeatedBytesField,
  writeBytes,
  writeElement,
  writeInt64,
} from './protobuf.ts';

test('an int64 reads back, negative ones included', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100 }), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (number, value) => {
      expect(int64Field(readMessage(writeInt64(number, value)) ?? [], number)).toBe(value);
    }),
  );
  expect(() => writeInt64(1, 2n ** 63n)).toThrow(RangeError);
});

test('zero and empty fields are left out, elements of a repeated field are not', () => {
  expect(writeInt64(1, 0)).toHaveLength(0);
  expect(writeBytes(1, new Uint8Array(0))).toHaveLength(0);
  expect(writeElement(1, new Uint8Array(0))).toHaveLength(2);
});

test('the last value of a field wins, and a repeated field keeps all', () => {
  const fields =
    readMessage(concatBytes(writeBytes(2, Uint8Array.of(1)), writeInt64(3, 7), writeBytes(2, Uint8Array.of(2)))) ?? [];
  expect(bytesField(fields, 2)).toEqual(Uint8Array.of(2));
  expect(repeatedBytesField(fields, 2)).toHaveLength(2);
  expect([int64Field(fields, 3), int64Field(fields, 9)]).toEqual([7n, 0n]);
});

test('fixed-width fields are skipped', () => {
  expect(readMessage(hexToBytes('0d010203040801'))).toEqual([{ kind: 'varint', number: 1, value: 1n }]);
});

test.each([
  ['a length beyond the end', '0a02ff'],
  ['a varint without an end', '08ffffffffffffffffffff01'],
  ['a varint over 64 bits', '08ffffffffffffffffff02'],
  ['a group', '0b0c'],
  ['field number zero', '0001'],
  ['a cut tag', '80'],
  ['a cut fixed-width field', '0d0102'],
])('%s is refused', (_name, hex) => {
  expect(readMessage(hexToBytes(hex))).toBeNull();
});

test('more fields than any real message has are refused', () => {
  expect(readMessage(hexToBytes('0801'.repeat(1001)))).toBeNull();
});
