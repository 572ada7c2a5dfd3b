import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crc32, formatApiKey, readApiKey } from './api-key.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const UUID = '01890a5d-ac96-774b-bcce-b302099a8057';

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });
const keyUuid = fc.uuid();
const network = fc.constantFrom('mainnet', 'nile', 'devnet');
const key = fc.tuple(network, keyUuid, secret).map((parts) => formatApiKey(...parts));

describe('secret keys', () => {
  test('are qt_live_ on the main network and qt_test_ on the others', () => {
    const bytes = new Uint8Array(32);
    expect(formatApiKey('mainnet', UUID, bytes)).toMatch(/^qt_live_01h455vb4pex5vsknk084sn02q0{43}[0-9A-Za-z]{6}$/);
    expect(formatApiKey('nile', UUID, bytes)).toMatch(/^qt_test_/);
    expect(formatApiKey('devnet', UUID, bytes)).toMatch(/^qt_test_/);
  });

  test('hold the key id, 32 random bytes in base62 and their CRC32 in base62', () => {
    fc.assert(
      fc.property(network, keyUuid, secret, (on, uuid, bytes) => {
        const text = formatApiKey(on, uuid, bytes);
        expect(text).toMatch(/^qt_(live|test)_[0-9a-z]{26}[0-9A-Za-z]{49}$/);
        expect(readApiKey(text)).toEqual({ keyUuid: uuid, mode: on === 'mainnet' ? 'live' : 'test' });
        expect(fromBase62(text.slice(34, 77))).toBe(BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
        expect(fromBase62(text.slice(77))).toBe(BigInt(zlibCrc32(text.slice(0, 77))));
      }),
    );
  });

  test('with the largest secret fit their 43 characters', () => {
    const text = formatApiKey('devnet', UUID, new Uint8Array(32).fill(255));
    expect(text).toHaveLength(83);
    expect(fromBase62(text.slice(34, 77))).toBe(2n ** 256n - 1n);
  });

  test('with one wrong character are recognised offline', () => {
    fc.assert(
      fc.property(key, fc.nat({ max: 82 }), fc.constantFrom(...BASE62), (text, at, character) => {
        fc.pre(text[at] !== character);
        expect(readApiKey(text.slice(0, at) + character + text.slice(at + 1))).toBeNull();
      }),
      { numRuns: 1000 },
    );
  });

  test('with two neighbouring characters swapped are recognised offline', () => {
    fc.assert(
      fc.property(key, fc.nat({ max: 81 }), (text, at) => {
        fc.pre(text[at] !== text[at + 1]);
        expect(readApiKey(text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2))).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  test('cut off, with more behind, or in another case are none', () => {
    fc.assert(
      fc.property(key, fc.nat({ max: 82 }), (text, length) => {
        for (const wrong of [text.slice(0, length), `${text}0`, ` ${text}`, `${text}\n`, text.toUpperCase()]) {
          expect(readApiKey(wrong)).toBeNull();
        }
      }),
    );
  });

  test('any other text is none', () => {
    fc.assert(fc.property(fc.string(), (text) => readApiKey(text) === null));
    // Whose id begins with 8, so that it would take 129 bits.
    const body = `qt_live_8${'0'.repeat(25)}${'0'.repeat(43)}`;
    const checksum = toBase62(zlibCrc32(body)).padStart(6, '0');
    expect(readApiKey(body + checksum)).toBeNull();
  });

  test('cannot be made from fewer or more than 32 bytes', () => {
    expect(() => formatApiKey('devnet', UUID, new Uint8Array(31))).toThrow('a secret key needs 32 random bytes');
    expect(() => formatApiKey('devnet', UUID, new Uint8Array(33))).toThrow(RangeError);
  });
});

describe('crc32', () => {
  test('has the published check value', () => {
    expect(crc32('123456789')).toBe(0xcbf43926);
  });

  test('equals zlib’s for ASCII', () => {
    fc.assert(fc.property(fc.string({ unit: 'grapheme-ascii' }), (text) => crc32(text) === zlibCrc32(text)));
  });
});

function toBase62(value: number): string {
  return value === 0 ? '' : toBase62(Math.floor(value / 62)) + BASE62.charAt(value % 62);
}

function fromBase62(text: string): bigint {
  return [...text].reduce((value, character) => value * 62n + BigInt(BASE62.indexOf(character)), 0n);
}
