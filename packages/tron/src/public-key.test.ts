import { HDKey } from '@scure/bip32';
import { expect, test } from 'vitest';
import { accountToAddress } from './address.ts';
import { accountFromPublicKey } from './public-key.ts';

test('the keys of an extended public key give the addresses a wallet shows', () => {
  const xpub =
    'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
  const external = HDKey.fromExtendedKey(xpub).deriveChild(0);
  const addresses = [0, 1, 2].map((index) => {
    const { publicKey } = external.deriveChild(index);
    return publicKey === null ? null : accountToAddress(accountFromPublicKey(publicKey));
  });
  expect(addresses).toEqual([
    'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH',
    'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK',
    'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx',
  ]);
});

test('a public key that is not on the curve is refused', () => {
  expect(() => accountFromPublicKey(new Uint8Array(33))).toThrow();
});
