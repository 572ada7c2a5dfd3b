import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalJson, readKeyIds, receiptKeyId, receiptKeyOf, toJwk, toJwkSet } from './receipt-key.ts';

/** RFC 8037, appendix A. */
const KEY = receiptKeyOf(
  Uint8Array.from(Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex')),
);
const JWK = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' } as const;
const ID = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';

const idsOf = (...keys: unknown[]) => readKeyIds(JSON.stringify({ keys }));

test('a key is named by the thumbprint of its public part, whatever else is said of it', () => {
  expect(toJwk(KEY.publicKey)).toEqual(JWK);
  expect(KEY.id).toBe(ID);
  expect(receiptKeyId({ ...JWK, kid: 'other' } as typeof JWK)).toBe(ID);
});

test('keys are published with their use, their algorithm and their names, in their order', () => {
  const other = receiptKeyOf(new Uint8Array(32).fill(1));
  const set = toJwkSet([other.publicKey, KEY.publicKey]);
  expect(set.keys[1]).toEqual({ ...JWK, kid: ID, use: 'sig', alg: 'EdDSA' });
  expect(readKeyIds(JSON.stringify(set))).toEqual([other.id, ID]);
});

test.each([
  ['nothing', null],
  ['a number', 7],
  ['an empty one', {}],
  ['another type', { ...JWK, kty: 'EC' }],
  ['another curve', { ...JWK, crv: 'X25519' }],
  ['no x', { kty: 'OKP', crv: 'Ed25519' }],
  ['an x in a list', { ...JWK, x: [JWK.x] }],
  ['a short x', { ...JWK, x: JWK.x.slice(1) }],
  ['a long x', { ...JWK, x: `A${JWK.x}` }],
  ['an x with more behind', { ...JWK, x: `${JWK.x}\n` }],
  ['an x with padding', { ...JWK, x: `${JWK.x.slice(0, -1)}=` }],
  ['an x with bits that mean nothing', { ...JWK, x: `${JWK.x.slice(0, -1)}p` }],
  ['an x in base64', { ...JWK, x: JWK.x.replace('_', '/') }],
])('of a set, %s is passed over', (_what, key) => {
  expect(idsOf(key, JWK)).toEqual([ID]);
});

test.each(['', '{', 'null', '7', '[]', '{}', '{"keys":{}}', '{"keys":"x"}', '{"keys":null}'])(
  '%j is no set',
  (text) => {
    expect(readKeyIds(text)).toBeNull();
  },
);

test('members are in the order of RFC 8785, section 3.2.3', () => {
  const value = {
    '\u20ac': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '\ud83d\ude00': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    '\u00f6': 'Latin Small Letter O With Diaeresis',
  };
  const order = [...canonicalJson(value).matchAll(/:"(.*?)"/g)].map(([, text]) => text);
  expect(order).toEqual([
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ]);
});

test('texts are written as in RFC 8785, section 3.2.2', () => {
  expect(canonicalJson('\u20ac$\u000f\u000aA\'\u0042\u0022\u005c\\"/')).toBe('"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"');
  expect(() => canonicalJson('\ud83d')).toThrow('a text contains an unpaired surrogate');
  expect(() => canonicalJson({ '\udead': 1 })).toThrow('surrogate');
});

test('only safe integers are numbers', () => {
  expect(canonicalJson({ zero: -0, large: Number.MAX_SAFE_INTEGER })).toBe('{"large":9007199254740991,"zero":0}');
  for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    expect(() => canonicalJson(value)).toThrow(`${value} is not a safe integer`);
  }
});

test('the form depends on the value alone, and is JSON of it', () => {
  const leaf = fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger());
  const members = fc.array(fc.tuple(fc.string(), fc.oneof(leaf, fc.dictionary(fc.string(), leaf))), { maxLength: 8 });
  fc.assert(
    fc.property(members, (entries) => {
      const unique = [...new Map(entries)];
      const text = canonicalJson(Object.fromEntries(unique));
      expect(canonicalJson(Object.fromEntries(unique.toReversed()))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(unique))));
    }),
  );
});
