import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readMessage, writeElement, writeInt64 } from './protobuf.ts';
import { scanMessage } from './scan-message.ts';

const scan = (hex: string) => scanMessage(hexToBytes(hex), 0, hex.length / 2);

const field = fc.oneof(
  fc.record({ number: fc.integer({ min: 1, max: 3000 }), value: fc.bigInt(1n, 2n ** 63n - 1n) }),
  fc.record({ number: fc.integer({ min: 1, max: 3000 }), value: fc.uint8Array({ maxLength: 200 }) }),
);

test('the fields of a message are found where they are, whatever stands around it', () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 8 }), fc.nat(9), (fields, margin) => {
      const message = concatBytes(
        ...fields.map(({ number, value }) =>
          typeof value === 'bigint' ? writeInt64(number, value) : writeElement(number, value),
        ),
      );
      const bytes = concatBytes(new Uint8Array(margin).fill(255), message, new Uint8Array(margin).fill(255));
      const scanned = scanMessage(bytes, margin, margin + message.length);
      const seen = scanned?.fields.map(({ number, wireType, start, end, low32 }) =>
        wireType === 0 ? { number, low32 } : { number, value: bytes.slice(start, end) },
      );
      expect(seen).toEqual(
        fields.map(({ number, value }) =>
          typeof value === 'bigint' ? { number, low32: Number(BigInt.asUintN(32, value)) } : { number, value },
        ),
      );
      const ascends = fields.every(({ number }, index) => number > (fields[index - 1]?.number ?? 0));
      expect(scanned?.isCanonical).toBe(ascends);
    }),
  );
});

test('arbitrary bytes are read as the other reader reads them, or refused', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const scanned = scanMessage(bytes, 0, bytes.length);
      const known = readMessage(bytes);
      if (known === null || scanned === null) return;
      const delimited = scanned.fields.filter(({ wireType }) => wireType === 2);
      expect(delimited.map(({ number, start, end }) => ({ number, value: bytes.subarray(start, end) }))).toEqual(
        known.flatMap((each) => (each.kind === 'bytes' ? [{ number: each.number, value: each.value }] : [])),
      );
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['a length beyond the end', '0a02ff'],
  ['a length of 2^32 − 1', '0affffffff0f00'],
  ['a varint without an end', '08ffffffffffffffffffff01'],
  ['field number zero', '0001'],
  ['a cut tag', '80'],
  ['a cut value', '0880'],
  ['a cut fixed-width field', '0d0102'],
  ['a group that does not end', '0b0801'],
  ['the end of no group', '0c'],
  ['groups nested too deep', '0b'.repeat(101) + '0c'.repeat(101)],
  ['wire type 6', '0e'],
  ['wire type 6, which eight bytes could follow', `0e${'00'.repeat(8)}`],
  ['wire type 7', `0f${'00'.repeat(8)}`],
  ['a varint of ten bytes without an end', `08${'ff'.repeat(10)}`],
  ['a cut length', '0a80'],
  ['a varint of eleven bytes', '088080808080808080808001'],
  ['a length of eleven bytes', '0a8080808080808080808001'],
  ['seven of eight bytes', '0901020304050607'],
  ['more fields than any real message has', '0801'.repeat(1001)],
])('%s is refused', (_what, hex) => {
  expect(scan(hex)).toBeNull();
});

test.each([
  ['a varint longer than it must be', '088100'],
  ['a tag longer than it must be', '880001'],
  ['a length longer than it must be', '0a8100ff'],
  ['a repeated field', '08010802'],
  ['descending fields', '10010801'],
  ['a field of four bytes', '0d01020304'],
  ['a field of eight bytes', '090102030405060708'],
  ['a group', '080113080214'],
])('%s has another reading than the canonical one', (_what, hex) => {
  expect(scan(hex)?.isCanonical).toBe(false);
});

test.each([
  ['a value of zero', '0800'],
  ['a length of zero', '0a00'],
])('%s is as short as it can be', (_what, hex) => {
  expect(scan(hex)?.isCanonical).toBe(true);
});

test('what is at its bound is read: fields, groups in each other, a varint of ten bytes', () => {
  expect(scan('0801'.repeat(1000))?.fields).toHaveLength(1000);
  expect(scan('0b'.repeat(100) + '0c'.repeat(100))?.fields).toEqual([]);
  expect(scan('08ffffffffffffffffff01')?.fields).toMatchObject([{ number: 1, low32: 2 ** 32 - 1 }]);
});

test('nothing behind the end is read, although bytes are there', () => {
  for (const hex of ['088001', '0d01020304', '0a0101', '0801']) {
    const bytes = hexToBytes(hex);
    expect(scanMessage(bytes, 0, bytes.length)).not.toBeNull();
    expect(scanMessage(bytes, 0, bytes.length - 1)).toBeNull();
  }
});

test('a group is passed over with what is in it', () => {
  expect(scan('0801130a0102141801')?.fields.map(({ number }) => number)).toEqual([1, 3]);
});
