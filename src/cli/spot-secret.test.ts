import { expect, test } from 'vitest';
import { isSeedPhrase, spotSecret } from './spot-secret.ts';

const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow';

test.each([
  ['a private key', '4f'.repeat(32)],
  ['a private key', `0x${'4F'.repeat(32)}`],
  ['a private key', '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ'],
  ['a private key', 'KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617'],
  ['an extended private key', `xprv9${'s'.repeat(106)}`],
  ['a seed phrase', WORDS],
  ['a seed phrase', `${WORDS} ${WORDS}`],
  ['a seed phrase', WORDS.replaceAll(' ', ', ')],
  ['a seed phrase', WORDS.replaceAll(' ', ';')],
  [
    'a seed phrase',
    WORDS.split(' ')
      .map((word, index) => `${index + 1}. ${word}`)
      .join('\n'),
  ],
  ['an encrypted private key', `6P${'R'.repeat(56)}`],
  ['a private key', '-----BEGIN EC PRIVATE KEY-----\nMHQC'],
  ['an extended private key', `zprv${'s'.repeat(107)}`],
  ['a wallet file', '{"version":3,"Crypto":{"cipher":"aes-128-ctr"}}'],
  ['a wallet file', ' {"mnemonic": "…"}'],
  ['a secret of Quittance', 'qt_live_x'],
  ['a secret of Quittance', 'whsec_x'],
])('spots %s', (kind, text) => {
  expect(spotSecret(text)).toBe(kind);
});

test('an address, a sentence and a hash that is cut short are no secrets', () => {
  for (const text of ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'these are my addresses', '4f'.repeat(20), '']) {
    expect(spotSecret(text)).toBeNull();
  }
});

test('words that are each an argument of their own are a seed phrase as well', () => {
  expect(isSeedPhrase(WORDS.split(' '))).toBe(true);
  expect(isSeedPhrase(WORDS.split(' ').map((word, index) => `${index + 1}) ${word}`))).toBe(true);
  expect(isSeedPhrase(WORDS.split(' ').slice(1))).toBe(false);
});
