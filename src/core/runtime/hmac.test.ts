import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHmacSha256 } from './hmac.ts';

test('the first two vectors of RFC 4231 come out', () => {
  expect(createHmacSha256(Buffer.alloc(20, 0x0b))('Hi There').toString('hex')).toBe(
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  );
  expect(createHmacSha256(Buffer.from('Jefe'))('what do ya want for nothing?').toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
});

test('whatever the key and the texts, one after another, it is the HMAC of Node.js', () => {
  const long = fc
    .constantFrom('a', 'é', '€', '\u{1f4b8}', '\ud800')
    .chain((unit) => fc.integer({ min: 2000, max: 9000 }).map((count) => unit.repeat(count)));
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), long);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.array(text, { minLength: 1, maxLength: 4 }), (key, texts) => {
      const hmac = createHmacSha256(Buffer.from(key));
      for (const each of texts) expect(hmac(each)).toEqual(createHmac('sha256', key).update(each).digest());
    }),
  );
});

test('a key that would have to be hashed first is refused', () => {
  expect(() => createHmacSha256(Buffer.alloc(65))).toThrow('64 bytes at most');
});
