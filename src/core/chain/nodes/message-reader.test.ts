import { writeElement, writeInt64 } from '@quittance/tron/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BadMessage, createMessageReader } from './message-reader.ts';

const bytes = (...parts: Uint8Array[]) => Buffer.concat(parts);

function readInfos(message: Uint8Array, size: number): string[] {
  const seen: string[] = [];
  const log = { take: 4 };
  const reader = createMessageReader(
    { 1: { enter: { 3: log, 8: log }, end: () => void seen.push('end') } },
    (field, value) => seen.push(`${field}=${value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value}`),
  );
  for (let at = 0; at < message.length; at += size) reader.push(message.subarray(at, at + size));
  reader.end();
  return seen;
}

test('fields of nested messages are told in order, in pieces of any size; what is not asked for, or too long, is not', () => {
  const info = bytes(
    writeElement(1, Buffer.from('aa', 'hex')),
    writeInt64(3, 300),
    Buffer.from('ff7d0102', 'hex').subarray(0, 0),
    writeElement(8, Buffer.from('0102', 'hex')),
    writeElement(8, Buffer.from('0102030405', 'hex')),
    writeElement(8, new Uint8Array(0)),
    Buffer.from('2d01020304', 'hex'), // field 5, four bytes
  );
  const message = bytes(writeElement(1, info), writeElement(9, info), writeElement(1, new Uint8Array(0)));
  const expected = ['3=300', '8=0102', '8=null', '8=', 'end', 'end'];
  fc.assert(
    fc.property(fc.integer({ min: 1, max: message.length }), (size) => {
      expect(readInfos(message, size)).toEqual(expected);
    }),
  );
});

test.each([
  ['a field longer than its message', '0a020a05'],
  ['a group', '0b'],
  ['field number 0', '00'],
  ['a tag of more than 32 bits', '8880808010'],
  ['an endless varint', 'ffffffffffffffffffffff'],
  ['an element that ends too early', '0a0518'],
])('%s is no message', (_what, hex) => {
  expect(() => readInfos(Buffer.from(hex, 'hex'), 2)).toThrow(BadMessage);
});
