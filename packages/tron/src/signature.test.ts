import { secp256k1 } from '@noble/curves/secp256k1.js';
import { hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { accountFromPublicKey } from './public-key.ts';
import { recoverKey, recoverSigner, signMessage } from './signature.ts';

const privateKey = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .filter((bytes) => secp256k1.utils.isValidSecretKey(bytes));
const message = fc.uint8Array({ maxLength: 100 });
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('what a key signed names its account and its key, with v as 0/1 and as 27/28', () => {
  fc.assert(
    fc.property(privateKey, message, (key, text) => {
      const signature = signMessage(text, key);
      const publicKey = secp256k1.getPublicKey(key, false);
      const account = accountFromPublicKey(publicKey);
      expect(signature).toMatch(/^[0-9a-f]{128}0[01]$/);
      expect(recoverKey(text, signature)).toEqual({ account, publicKey });
      const asWallets = signature.slice(0, 128) + hexOf(Uint8Array.of(Number(signature.slice(128)) + 27));
      expect(recoverSigner(text, asWallets)).toBe(account);
    }),
    { numRuns: 20 },
  );
});

test('the account of the private key 1 is the one that every Ethereum-style wallet gives it', () => {
  const key = hexToBytes('1'.padStart(64, '0'));
  const account = recoverSigner(new Uint8Array(3), signMessage(new Uint8Array(3), key));
  expect(account).toBe('7e5f4552091a69125d5dfcb7b8c2659029395bdf');
});

test('a signature of another shape, or with another v, has no signer', () => {
  const signature = signMessage(Uint8Array.of(1), hexToBytes('01'.repeat(32)));
  const rs = signature.slice(0, 128);
  for (const v of ['02', '03', '1a', '1d', '1e', 'ff', '', '000', '0200']) {
    expect(recoverKey(Uint8Array.of(1), rs + v)).toBeNull();
    expect(recoverSigner(Uint8Array.of(1), rs + v)).toBeNull();
  }
});

test('what follows the 65 bytes of a signature is not looked at', () => {
  const message = Uint8Array.of(1);
  const signature = signMessage(message, hexToBytes('01'.repeat(32)));
  const signer = recoverSigner(message, signature);
  expect(signer).not.toBeNull();
  for (const tail of ['00', 'ff', '0102', 'ab'.repeat(1000)]) {
    expect(recoverSigner(message, signature + tail)).toBe(signer);
  }
});

test('r and s that no key can have made have no signer', () => {
  const order = secp256k1.Point.Fn.ORDER.toString(16);
  for (const [r, s] of [
    ['00'.repeat(32), '01'.repeat(32)],
    ['01'.repeat(32), '00'.repeat(32)],
    [order, '01'.repeat(32)],
    ['01'.repeat(32), order],
    // 5 is the x of no point.
    ['5'.padStart(64, '0'), '01'.repeat(32)],
  ]) {
    expect(recoverKey(Uint8Array.of(1), `${r}${s}00`)).toBeNull();
  }
});
