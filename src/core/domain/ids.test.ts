import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeId, encodeId, firstIdOf, formatCheckoutToken, isCheckoutToken, NIL_UUID, uuidV7 } from './ids.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const uuid = fc.bigInt(0n, 2n ** 128n - 1n).map(uuidOf);

function uuidOf(value: bigint): string {
  return value
    .toString(16)
    .padStart(32, '0')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The specification said as plainly as can be: the value in base 32, most significant character first. */
function suffixOf(id: string): string {
  const value = BigInt(`0x${id.replaceAll('-', '')}`);
  return Array.from({ length: 26 }, (_, at) => ALPHABET[Number((value >> BigInt(5 * (25 - at))) & 31n)]).join('');
}

describe('TypeIDs', () => {
  test.each([
    ['00000000-0000-0000-0000-000000000000', '00000000000000000000000000'],
    ['00000000-0000-0000-0000-000000000001', '00000000000000000000000001'],
    ['00000000-0000-0000-0000-000000000020', '00000000000000000000000010'],
    ['ffffffff-ffff-ffff-ffff-ffffffffffff', '7zzzzzzzzzzzzzzzzzzzzzzzzz'],
    ['0110c853-1d09-52d8-d73e-1194e95b5f19', '0123456789abcdefghjkmnpqrs'],
    ['01890a5d-ac96-774b-bcce-b302099a8057', '01h455vb4pex5vsknk084sn02q'],
  ])('the specification’s example %s', (id, suffix) => {
    expect(encodeId('inv', id)).toBe(`inv_${suffix}`);
    expect(decodeId('inv', `inv_${suffix}`)).toBe(id);
  });

  test('every UUID is written as the specification says and read back', () => {
    fc.assert(
      fc.property(uuid, (id) => {
        expect(encodeId('evt', id)).toBe(`evt_${suffixOf(id)}`);
        expect(decodeId('evt', encodeId('evt', id))).toBe(id);
      }),
      { numRuns: 1000 },
    );
  });

  test('the order of ids is the order of their UUIDs', () => {
    fc.assert(
      fc.property(uuid, uuid, (a, b) => {
        expect(encodeId('inv', a) < encodeId('inv', b)).toBe(a < b);
      }),
    );
  });

  test('the nil id is a UUID, and below all others', () => {
    expect(encodeId('inv', NIL_UUID)).toBe(`inv_${'0'.repeat(26)}`);
    fc.assert(fc.property(uuid, (id) => NIL_UUID <= id));
  });

  test('anything else is no id: another prefix, upper case, other letters, another length, too large', () => {
    const id = encodeId('inv', '01890a5d-ac96-774b-bcce-b302099a8057');
    const suffix = id.slice(4);
    const wrong = [
      `evt_${suffix}`,
      suffix,
      `inv${suffix}`,
      `inv-${suffix}`,
      id.toUpperCase(),
      `inv_${suffix.toUpperCase()}`,
      `inv_8${suffix.slice(1)}`,
      `inv_i${suffix.slice(1)}`,
      ...['i', 'l', 'o', 'u', '_', ' ', 'é', '\0'].map((letter) => id.slice(0, -1) + letter),
      id.slice(0, -1),
      `${id}0`,
      `${id}\n`,
      ` ${id}`,
      '',
      'inv_',
    ];
    for (const each of wrong) expect(decodeId('inv', each), each).toBeNull();
  });

  test('what is read is exactly what was written: no two texts are one id', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...ALPHABET, 'i', 'U'), minLength: 26, maxLength: 26 }),
        (suffix) => {
          const read = decodeId('inv', `inv_${suffix}`);
          if (read !== null) expect(encodeId('inv', read)).toBe(`inv_${suffix}`);
        },
      ),
    );
  });

  test('encodeId refuses what is not a canonical UUID', () => {
    const uuid = '01890a5d-ac96-774b-bcce-b302099a8057';
    for (const wrong of [
      ` ${uuid}`,
      `${uuid}0`,
      '',
      'x',
      '01890A5D-AC96-774B-BCCE-B302099A8057',
      '01890a5dac96774bbcceb302099a8057',
    ]) {
      expect(() => encodeId('inv', wrong)).toThrow(`not a UUID: ${wrong}`);
    }
  });
});

describe('uuidV7', () => {
  const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
  const time = fc.integer({ min: 0, max: 2 ** 48 - 1 });

  test('has version 7, the variant of RFC 9562, and the time in its first 48 bits', () => {
    fc.assert(
      fc.property(time, random, (nowMs, bytes) => {
        const id = uuidV7(nowMs, bytes);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(nowMs);
      }),
    );
  });

  test('keeps 74 of the random bits, and leaves the bytes it was given alone', () => {
    fc.assert(
      fc.property(time, random, random, (nowMs, a, b) => {
        const before = Uint8Array.from(a);
        const isSame = uuidV7(nowMs, a) === uuidV7(nowMs, b);
        const significant = (bytes: Uint8Array) =>
          bytes.map((byte, at) => (at === 0 ? byte & 0x0f : at === 2 ? byte & 0x3f : byte)).join();
        expect(isSame).toBe(significant(a) === significant(b));
        expect(a).toEqual(before);
      }),
    );
  });

  test('ids of one millisecond rise with the count, which stops at 4,095', () => {
    fc.assert(
      fc.property(time, random, fc.nat(5000), (nowMs, bytes, count) => {
        const counter = Number.parseInt(uuidV7(nowMs, bytes, count).slice(15, 18), 16);
        expect(counter).toBe(Math.min(count, 4095));
      }),
    );
  });

  test('is written in the order of the random bytes', () => {
    const bytes = Uint8Array.from([0xf1, 0x23, 0xc4, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x12]);
    expect(uuidV7(0x0123_4567_89ab + 0.9, bytes)).toBe('01234567-89ab-7123-8456-789abcdef012');
    expect(uuidV7(0, bytes, 5)).toBe('00000000-0000-7005-8456-789abcdef012');
    expect(uuidV7(0, Uint8Array.from([...bytes, 7]))).toBe(uuidV7(0, bytes));
  });

  test('refuses fewer than 10 random bytes', () => {
    expect(() => uuidV7(0, new Uint8Array(9))).toThrow('a UUIDv7 needs 10 random bytes');
  });
});

test('the first id of a millisecond is at most every id of it, and above every id before it', () => {
  const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 47 }), random, (time, bytes) => {
      expect(firstIdOf(time) <= uuidV7(time, bytes)).toBe(true);
      expect(firstIdOf(time) > uuidV7(time - 1, bytes)).toBe(true);
    }),
  );
  expect(firstIdOf(-1)).toBe(firstIdOf(0));
});

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
