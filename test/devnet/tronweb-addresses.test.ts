import { type AccountXpub, deriveAddresses, parseAccountXpub } from '@quittance/tron/account-xpub';
import { HDKey } from '@scure/bip32';
import fc from 'fast-check';
import { TronWeb } from 'tronweb';
import { expect, test } from 'vitest';

const PHRASE = `${'abandon '.repeat(11)}about`;
/** Its account m/44'/195'/0'. */
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd' as AccountXpub;

test('TronWeb derives the same addresses from the seed phrase', () => {
  const theirs = [0, 1, 7, 250].map((index) => TronWeb.fromMnemonic(PHRASE, `m/44'/195'/0'/0/${index}`).address);
  expect([0, 1, 7, 250].map((index) => deriveAddresses(XPUB, index, 1)[0]?.address)).toEqual(theirs);
});

test('without the private key the same addresses come out as with it', () => {
  const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(seeds, fc.nat(2 ** 31 - 1), fc.nat(2 ** 31 - 1), (seed, accountNumber, index) => {
      const account = HDKey.fromMasterSeed(seed).derive(`m/44'/195'/${accountNumber}'`);
      const parsed = parseAccountXpub(account.publicExtendedKey);
      if (parsed.kind !== 'ok') throw new Error(parsed.reason);
      expect(parsed.accountNumber).toBe(accountNumber);
      const { privateKey } = account.derive(`m/0/${index}`);
      const theirs = TronWeb.address.fromPrivateKey(Buffer.from(privateKey ?? []).toString('hex'));
      expect(deriveAddresses(parsed.xpub, index, 1)).toMatchObject([{ index, address: theirs }]);
    }),
    { numRuns: 20 },
  );
});
