import { createDecipheriv, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createKeyRing, createMasterKey, decrypt, encrypt, KeyRingError, parseMasterKey } from './key-ring.ts';

const PLACE = 'webhook_secrets.sealed:1:2';
const key = createMasterKey();
const ring = createKeyRing([key]);

test('what is sealed opens to the same bytes, in its place only', () => {
  for (const size of [0, 24, 32, 64]) {
    const plain = randomBytes(size);
    const sealed = encrypt(ring, plain, PLACE);
    expect(sealed.masterKeyId).toBe(key.id);
    expect(sealed.sealed).toHaveLength(size + 28);
    expect(decrypt(ring, sealed, PLACE)).toEqual({ kind: 'ok', plain });
    for (const place of ['webhook_secrets.sealed:1:3', 'webhook_secrets.other:1:2', `${PLACE} `, '']) {
      expect(decrypt(ring, sealed, place)).toEqual({ kind: 'damaged' });
    }
  }
});

test('with any one bit changed, or cut short at any byte, nothing opens', () => {
  const { masterKeyId, sealed } = encrypt(ring, randomBytes(24), PLACE);
  for (let bit = 0; bit < sealed.length * 8; bit += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(decrypt(ring, { masterKeyId, sealed: changed }, PLACE)).toEqual({ kind: 'damaged' });
  }
  for (let size = 0; size < sealed.length; size += 1) {
    expect(decrypt(ring, { masterKeyId, sealed: sealed.subarray(0, size) }, PLACE)).toEqual({ kind: 'damaged' });
  }
});

test('the same bytes never look the same twice, and have a nonce of their own', () => {
  const plain = Buffer.alloc(32, 7);
  const sealed = Array.from({ length: 1000 }, () => encrypt(ring, plain, PLACE).sealed);
  expect(new Set(sealed.map((bytes) => bytes.toString('hex', 0, 12))).size).toBe(1000);
  expect(new Set(sealed.map((bytes) => bytes.toString('hex', 12))).size).toBe(1000);
});

test('the first key seals, and each key opens what it sealed', () => {
  const [older, newer] = [createMasterKey(), createMasterKey()];
  const sealed = encrypt(createKeyRing([older]), Buffer.from('secret'), PLACE);
  const both = createKeyRing([newer, older]);
  expect(encrypt(both, Buffer.from('x'), PLACE).masterKeyId).toBe(newer.id);
  expect(decrypt(both, sealed, PLACE)).toMatchObject({ kind: 'ok' });
  expect(decrypt(createKeyRing([newer]), sealed, PLACE)).toEqual({ kind: 'unknown-key' });
  // With the id of a key that didn't encrypt it.
  expect(decrypt(both, { ...sealed, masterKeyId: newer.id }, PLACE)).toEqual({ kind: 'damaged' });
});

test('a key is 32 bytes in base64 or hexadecimal, with one id however it is written, and an id tells nothing', () => {
  const bytes = Buffer.alloc(32, 0xab);
  const parsed = parseMasterKey(bytes.toString('base64'));
  expect(parsed).toEqual({ id: 'b0bb3737950e27af', bytes });
  expect(parseMasterKey(bytes.toString('hex'))).toEqual(parsed);
  expect(parseMasterKey(bytes.toString('hex').toUpperCase())).toEqual(parsed);
  const wrong = [
    '',
    'x',
    `${bytes.toString('hex')}0`,
    `0${bytes.toString('hex')}`,
    ` ${bytes.toString('base64')}`,
    bytes.toString('base64url'),
    randomBytes(31).toString('base64'),
  ];
  for (const text of [...wrong, `${bytes.toString('base64')}\n`, randomBytes(33).toString('base64')]) {
    expect(parseMasterKey(text)).toBeNull();
  }
});

test('a ring has each key once, and at least one', () => {
  const [one, two] = [createMasterKey(), createMasterKey()];
  const both = createKeyRing([one, two, { ...one }]);
  expect(both.keys()).toEqual([one, two]);
  expect([both.find(two.id), both.find('none')]).toEqual([two, undefined]);
  expect(() => createKeyRing([])).toThrow('at least one key');
});

test('a ring knows where its keys come from, and has nothing to read again', async () => {
  const source = { kind: 'file', path: '/keys' } as const;
  const ring = createKeyRing([key], source);
  expect(ring.source).toEqual(source);
  expect(createKeyRing([key]).source).toEqual({ kind: 'setting' });
  await ring.reload();
  expect(ring.keys()).toEqual([key]);
});

test('new keys are 32 random bytes', () => {
  const keys = Array.from({ length: 100 }, createMasterKey);
  expect(keys.every(({ bytes }) => bytes.length === 32)).toBe(true);
  expect(new Set(keys.map(({ id }) => id)).size).toBe(100);
});

test('what is sealed is AES-256-GCM: nonce, ciphertext, tag, and the place as what is bound to it', () => {
  const { sealed } = encrypt(ring, Buffer.from('a secret'), PLACE);
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(0, 12));
  decipher.setAAD(Buffer.from(PLACE)).setAuthTag(sealed.subarray(-16));
  expect(Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString()).toBe('a secret');
});

test('an error of keys has its name, its code and its cause', () => {
  const cause = new Error('ENOENT');
  const error = new KeyRingError('KEY_FILE_INVALID', 'the file holds no key', { cause });
  expect(error).toMatchObject({
    name: 'KeyRingError',
    code: 'KEY_FILE_INVALID',
    message: 'the file holds no key',
    cause,
  });
});
