import { HDKey } from '@scure/bip32';
import { expect, test } from 'vitest';
import { type AccountXpub, deriveAddresses, parseAccountXpub } from './account-xpub.ts';

// The account m/44'/195'/0' of the seed phrase that is "abandon" eleven times and "about".
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd' as AccountXpub;

test('an account key gives the addresses that a wallet shows', () => {
  expect(parseAccountXpub(XPUB)).toEqual({ kind: 'ok', xpub: XPUB, accountNumber: 0 });
  expect(deriveAddresses(XPUB, 0, 3).map(({ address }) => address)).toEqual([
    'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH',
    'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK',
    'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx',
  ]);
});

const master = HDKey.fromMasterSeed(new Uint8Array(32).fill(7));
const at = (path: string) => master.derive(path).publicExtendedKey;
const inForm = (publicVersion: number) =>
  HDKey.fromMasterSeed(new Uint8Array(32), { public: publicVersion, private: 0x0488ade4 }).derive("m/44'/195'/0'")
    .publicExtendedKey;

test.each([
  ['the master key', master.publicExtendedKey, 'depth 0: it is the master key'],
  [
    "m/44'",
    at("m/44'"),
    "depth 1: it is the key of level 1 (m/44'); export the key of the account itself, m/44'/195'/0'",
  ],
  ["m/44'/195'", at("m/44'/195'"), 'the key of a coin'],
  ["m/44'/195'/0'/0", at("m/44'/195'/0'/0"), 'the key of one chain'],
  ["m/44'/195'/0'/0/0", at("m/44'/195'/0'/0/0"), 'the key of a single address'],
  ['a key of depth 6', at("m/44'/195'/0'/0/0/1"), 'too deep'],
  ['a third step that is not hardened', at("m/44'/195'/5"), '5, is not hardened'],
  ['ypub', inForm(0x049d7cb2), 'the format of Bitcoin or another chain (ypub…)'],
  ['zpub', inForm(0x04b24746), '(zpub…)'],
  ['tpub', inForm(0x043587cf), '(tpub…)'],
  ['xprv', master.derive("m/44'/195'/0'").privateExtendedKey, 'private key'],
  ['one character wrong', `${XPUB.slice(0, -1)}e`, 'checksum'],
  ['the end cut off', XPUB.slice(0, -1), 'checksum'],
  ['words before it', `key: ${XPUB}`, 'not an extended public key'],
  ['a line break and more behind it', `${XPUB}\nand more`, 'not an extended public key'],
  ['four letters with prv before the last', `prvx${XPUB.slice(4)}`, 'the format of Bitcoin or another chain (prvx…)'],
  ['an address', 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'not an extended public key'],
  ['nothing', '', 'not an extended public key'],
])('%s is refused with a reason that does not repeat it', (_what, text, reason) => {
  const parsed = parseAccountXpub(text);
  expect(parsed).toEqual({ kind: 'invalid', reason: expect.stringContaining(reason) });
  if (parsed.kind === 'invalid' && text !== '') expect(parsed.reason).not.toContain(text);
});
