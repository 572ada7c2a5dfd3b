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
  expect(() => writeInt64(1, 2n ** 63n)).toThrow('field 1: 9223372036854775808 is not an int64');
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

test('fixed-width fields are skipped, also at the end', () => {
  expect(readMessage(hexToBytes('0d01020304'))).toEqual([]);
  expect(readMessage(hexToBytes('0901020304050607080801'))).toEqual([{ kind: 'varint', number: 1, value: 1n }]);
  expect(readMessage(hexToBytes('0d010203040801'))).toEqual([{ kind: 'varint', number: 1, value: 1n }]);
});

test.each([
  ['a length beyond the end', '0a02ff'],
  ['a varint without an end', '08ffffffffffffffffffff01'],
  ['a varint over 64 bits', '08ffffffffffffffffff02'],
  ['the varint 2^64', '0880808080808080808002'],
  ['a varint of eleven bytes', '088080808080808080808000'],
  ['a group', '0b0c'],
  ['a group whose tag could be followed by a length', '0b00'],
  ['wire type 7', '0f00'],
  ['a tag over 32 bits', '888080801000'],
  ['field number zero', '0001'],
  ['a cut tag', '80'],
  ['a cut fixed-width field', '0d0102'],
  ['seven of eight bytes', '0901020304050607'],
])('%s is refused', (_name, hex) => {
  expect(readMessage(hexToBytes(hex))).toBeNull();
});

test('a field number is not enough: a field of the other wire type is not taken for it', () => {
  const fields = readMessage(concatBytes(writeInt64(1, 7), writeElement(2, Uint8Array.of(9)))) ?? [];
  expect([int64Field(fields, 2), bytesField(fields, 1), repeatedBytesField(fields, 1)]).toEqual([
    0n,
    new Uint8Array(0),
    [],
  ]);
  const both = readMessage(concatBytes(writeInt64(1, 7), writeElement(1, Uint8Array.of(9)), writeInt64(1, 8))) ?? [];
  expect([int64Field(both, 1), bytesField(both, 1), repeatedBytesField(both, 1)]).toEqual([
    8n,
    Uint8Array.of(9),
    [Uint8Array.of(9)],
  ]);
  const reversed = readMessage(concatBytes(writeInt64(1, 7), writeElement(1, Uint8Array.of(9)))) ?? [];
  expect(int64Field(reversed, 1)).toBe(7n);
});

test('the largest tag and the largest varint are read', () => {
  expect(readMessage(hexToBytes('f8ffffff0f05'))).toEqual([{ kind: 'varint', number: 2 ** 29 - 1, value: 5n }]);
  expect(readMessage(hexToBytes('08ffffffffffffffffff01'))).toEqual([
    { kind: 'varint', number: 1, value: 2n ** 64n - 1n },
  ]);
});

test('more fields than any real message has are refused', () => {
  expect(readMessage(hexToBytes('0801'.repeat(1000)))).toHaveLength(1000);
  expect(readMessage(hexToBytes('0801'.repeat(1001)))).toBeNull();
});
