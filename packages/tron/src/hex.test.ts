import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bytesFromHex, hexOf, writeHex } from './hex.ts';

test('hex of either case reads as its bytes, at any offset', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.boolean(), fc.nat(5), (bytes, isUpper, offset) => {
      const text = Buffer.from(bytes).toString('hex');
      const hex = isUpper ? text.toUpperCase() : text;
      expect(bytesFromHex(hex)).toEqual(bytes);
      const into = new Uint8Array(offset + bytes.length + 2);
      expect(writeHex(hex, into, offset)).toBe(offset + bytes.length);
      expect(into.subarray(offset, offset + bytes.length)).toEqual(bytes);
      expect(into.subarray(offset + bytes.length)).toEqual(new Uint8Array(2));
    }),
  );
});

test('bytes of any number are written as lower-case hex', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2000 }), (bytes) => {
      expect(hexOf(bytes)).toBe(Buffer.from(bytes).toString('hex'));
    }),
  );
});

test('one character that is no hex digit, anywhere, is refused', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc.nat(),
      fc.string({ minLength: 1, maxLength: 1 }),
      (bytes, at, stranger) => {
        fc.pre(!/[0-9a-f]/i.test(stranger));
        const text = Buffer.from(bytes).toString('hex');
        const position = at % text.length;
        expect(bytesFromHex(text.slice(0, position) + stranger + text.slice(position + 1))).toBeNull();
      },
    ),
  );
});

test.each(['0', 'abc', '0x00', 'ı0', '0ı', '0000ı', '１２', null, 12, undefined, ['00']])('%j is not hex', (text) => {
  expect(bytesFromHex(text)).toBeNull();
});
