import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keyPairOf } from '@quittance/devnet/evm/keys';
import { recoverSigner, signMessage } from '@quittance/tron/signature';
import { expect, test } from 'vitest';
import { recoverProducer } from './prove-block.ts';

const pair = () => keyPairOf(secp256k1.utils.randomSecretKey());
const header = (number: number) => Uint8Array.of(8, number, 1, 2, 3);

test('the signer is the same whether the key is recovered or was known before', () => {
  const [producer, key] = [pair().account, pair()];
  for (let number = 0; number < 20; number += 1) {
    const signature = signMessage(header(number), key.privateKey);
    expect(recoverProducer(producer, header(number), signature)).toBe(key.account);
    expect(recoverSigner(header(number), signature)).toBe(key.account);
  }
});

test('a new key of a producer is found, and the old one again', () => {
  const [producer, one, other] = [pair().account, pair(), pair()];
  for (const key of [one, other, one]) {
    expect(recoverProducer(producer, header(1), signMessage(header(1), key.privateKey))).toBe(key.account);
  }
});

test('a signature of another message, or with any bit of r or s changed, is not the known key’s', () => {
  const [producer, key] = [pair().account, pair()];
  const signature = signMessage(header(1), key.privateKey);
  expect(recoverProducer(producer, header(1), signature)).toBe(key.account);
  expect(recoverProducer(producer, header(2), signature)).not.toBe(key.account);
  for (let bit = 0; bit < 512; bit += 37) {
    const bytes = Buffer.from(signature, 'hex');
    bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(recoverProducer(producer, header(1), bytes.toString('hex'))).not.toBe(key.account);
    expect(recoverProducer(producer, header(1), signature)).toBe(key.account);
  }
});

test.each(['', 'zz', '00'.repeat(65), 'ff'.repeat(65), '11'.repeat(64), `${'11'.repeat(65)}zz`])(
  'what is no signature (%s) has no signer',
  (text) => {
    expect(recoverProducer(pair().account, header(1), text)).toBeNull();
  },
);
