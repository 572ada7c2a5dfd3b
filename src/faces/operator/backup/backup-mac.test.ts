import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createKeyRing, createMasterKey, parseMasterKey } from '../../../core/runtime/key-ring.ts';
import { macOf } from './backup-format.ts';
import { authenticate } from './backup-read.ts';

const KEY = parseMasterKey('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f') ?? createMasterKey();
const LEDGER = '00000000-0000-7000-8000-000000000077';
const digest = createHash('sha256').update('a backup').digest();

test('the MAC of a backup stays what it is in every release: HMAC(HKDF(key, ledger, label), digest), as Python reckons it', () => {
  expect(macOf(KEY, LEDGER, digest).toString('hex')).toBe(
    '9e41fb0d4007a84694cc1a3ffd6d81efd5e6745c05025e9be2cad642591d03b4',
  );
  expect(macOf(KEY, null, digest).toString('hex')).toBe(
    'c3c44a295bfbd89b8dde9996ae6ac0905971e207d73a440ddb48bba872b0701d',
  );
});

test('a MAC is right under the key that it names, for its ledger and for no other bytes', () => {
  const ending = { digest, signed: { masterKeyId: KEY.id, mac: macOf(KEY, LEDGER, digest) } };
  const ring = createKeyRing([createMasterKey(), KEY]);
  expect(authenticate(ring, LEDGER, ending)).toEqual({ kind: 'authentic', masterKeyId: KEY.id });
  expect(authenticate(ring, null, ending).kind).toBe('tampered');
  expect(authenticate(ring, LEDGER, { ...ending, digest: Buffer.alloc(32) }).kind).toBe('tampered');
  expect(authenticate(createKeyRing([createMasterKey()]), LEDGER, ending)).toMatchObject({
    kind: 'unknown-key',
    hasKeys: true,
  });
  expect(authenticate(null, LEDGER, ending)).toMatchObject({ kind: 'unknown-key', hasKeys: false });
  expect(authenticate(ring, LEDGER, { digest, signed: null })).toEqual({ kind: 'unsigned' });
});
