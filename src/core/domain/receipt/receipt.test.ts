import { createPublicKey, verify } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalJson,
  checkReceipt,
  formatReceipt,
  MAX_RECEIPT_BYTES,
  type Receipt,
  readKeyIds,
  readReceipt,
  receiptKeyId,
  receiptKeyOf,
  type SignedReceipt,
  signReceipt,
  toJwk,
  toJwkSet,
} from './receipt.ts';

const RECEIPT: Receipt = {
  version: 1,
  issuer: 'https://pay.example.com',
  merchant: 'Café "Ö" 🍵',
  network: 'TRON',
  chain: 'mainnet',
  asset: 'USDT',
  contract: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  amount: '25.000009',
  from: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  to: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  transaction: {
    txId: '0a'.repeat(32),
    logIndex: 0,
    blockNumber: 87_654_321,
    blockId: '0b'.repeat(32),
    blockTime: '2026-09-01T12:00:00.000Z',
  },
};
const refused = (reason: string) => ({ kind: 'invalid', reason });

test.each([
  ['issuer', 'http://localhost:3000'],
  ['issuer', `https://${'x'.repeat(255)}`],
  ['merchant', 'x'],
  ['merchant', '🍵'.repeat(100)],
  ['chain', 'nile'],
  ['chain', 'devnet'],
  ['amount', '1'],
])('a receipt may have the %s %j', (name, value) => {
  const receipt = { ...RECEIPT, [name]: value };
  expect(readReceipt(receipt)).toEqual({ kind: 'ok', receipt });
});

const ADDRESSES = ['', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u', 7, null, ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t']];
const WRONG: Record<string, readonly unknown[]> = {
  issuer: [
    ...['', 'pay.example.com', 'ftp://pay.example.com', 'xhttps://pay.example.com', 'https://', 'https://a b'],
    ...['https://a/', 'https://a?', 'https://a#', 'https://u@a', `https://${'x'.repeat(256)}`, 'https://a\ud83d'],
    ...[7, ['https://pay.example.com']],
  ],
  merchant: ['', '🍵'.repeat(101), '\ud83d', 7, ['Shop'], null],
  network: ['tron', '', 7],
  chain: ['shasta', '', 7, ['mainnet']],
  asset: ['usdt', '', 7],
  contract: ADDRESSES,
  amount: ['0', '-1', '', 25, ['25']],
  from: ADDRESSES,
  to: ADDRESSES,
  transaction: [null, [], 'x', undefined],
};

test.each(Object.entries(WRONG))('a receipt without a right %s is none', (name, values) => {
  const reason = `contains a receipt whose ${name} is missing or not valid`;
  for (const value of values) expect(readReceipt({ ...RECEIPT, [name]: value })).toEqual(refused(reason));
  expect(readReceipt(Object.fromEntries(Object.entries(RECEIPT).filter(([member]) => member !== name)))).toEqual(
    refused(reason),
  );
});

const HASHES = [
  '',
  '0A'.repeat(32),
  '0a'.repeat(31),
  '0a'.repeat(33),
  `${'0a'.repeat(32)}\n`,
  `x${'0a'.repeat(32)}`,
  7,
];
const COUNTS = [-1, 0.5, '1', null, 2 ** 53, Number.NaN];
const WRONG_IN_TRANSACTION: Record<string, readonly unknown[]> = {
  txId: [...HASHES, ['0a'.repeat(32)]],
  logIndex: COUNTS,
  blockNumber: COUNTS,
  blockId: HASHES,
  blockTime: ['', 'yesterday', '2026-02-31T12:00:00.000Z', '2026-09-01T12:00:00Z', '2026-09-01', 7, null],
};

test.each(Object.entries(WRONG_IN_TRANSACTION))(
  'a receipt whose transaction has no right %s is none',
  (name, values) => {
    const reason = `contains a receipt whose ${name} is missing or not valid`;
    for (const value of [...values, undefined]) {
      const transaction = { ...RECEIPT.transaction, [name]: value };
      expect(readReceipt({ ...RECEIPT, transaction })).toEqual(refused(reason));
    }
  },
);

test('nothing may stand in it besides', () => {
  const reason = 'contains a receipt with members that Quittance does not write';
  expect(readReceipt({ ...RECEIPT, invoiceId: 'x' })).toEqual(refused(reason));
  expect(readReceipt({ ...RECEIPT, transaction: { ...RECEIPT.transaction, fee: 1 } })).toEqual(refused(reason));
});

test('what has no version is no receipt, and what has another is one of another release', () => {
  for (const value of [null, undefined, 'x', 7, [], [RECEIPT], {}, { ...RECEIPT, version: '1' }]) {
    expect(readReceipt(value)).toEqual(refused('contains no receipt'));
  }
  expect(readReceipt({ ...RECEIPT, version: 2 })).toEqual(
    refused('contains a receipt of version 2, but this release reads version 1: use a newer release'),
  );
});

const hex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'));
const bytesOf = (text: string) => new TextEncoder().encode(text);
const base64url = (text: string) => Buffer.from(text).toString('base64url');

const KEY = receiptKeyOf(hex('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'));
const SIGNED = signReceipt(RECEIPT, KEY);
const FILE = formatReceipt(SIGNED);

const checkText = (text: string) => checkReceipt(bytesOf(text));
const checkSigned = (signed: unknown) => checkText(JSON.stringify(signed));
const withHeader = (header: object) =>
  checkSigned({ ...SIGNED, signature: `${base64url(JSON.stringify(header))}..${SIGNED.signature.split('..')[1]}` });
const headerOf = (signed: SignedReceipt) =>
  JSON.parse(Buffer.from(signed.signature.split('.')[0] ?? '', 'base64url').toString());

describe('keys', () => {
  test('are those of RFC 8037, appendix A', () => {
    expect(Buffer.from(KEY.publicKey).toString('hex')).toBe(
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    );
  });

  test('sign as RFC 8032, section 7.1, and RFC 8037, appendix A.4, say', () => {
    const message = Buffer.from('eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc');
    const third = hex('c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7');
    expect(Buffer.from(ed25519.sign(message, KEY.privateKey)).toString('base64url')).toBe(
      'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg',
    );
    expect(Buffer.from(ed25519.sign(hex('af82'), third)).toString('hex')).toBe(
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    );
  });
});

describe('a signed receipt', () => {
  test('is intact, whatever white space, order and escapes it is written with', () => {
    const intact = { kind: 'intact', receipt: RECEIPT, keyId: KEY.id };
    expect(checkText(FILE)).toEqual(intact);
    expect(checkText(`\ufeff${JSON.stringify(SIGNED)}`)).toEqual(intact);
    const turned = Object.fromEntries(Object.entries(RECEIPT).toReversed());
    const escaped = JSON.stringify({ signature: SIGNED.signature, receipt: turned }, null, '\t').replace(
      'é',
      '\\u00e9',
    );
    expect(checkText(escaped)).toEqual(intact);
    expect(signReceipt(RECEIPT, KEY)).toEqual(SIGNED);
    expect(FILE).toBe(`${JSON.stringify(SIGNED, null, 2)}\n`);
    expect(checkText(FILE.padEnd(MAX_RECEIPT_BYTES - (bytesOf(FILE).length - FILE.length)))).toEqual(intact);
  });

  test('is a JWS that a standard library verifies with the key of its header', () => {
    const [header = '', , signature = ''] = SIGNED.signature.split('.');
    const { alg, kid, jwk, typ } = headerOf(SIGNED);
    expect({ alg, kid, typ }).toEqual({ alg: 'EdDSA', kid: KEY.id, typ: 'quittance-receipt+jws' });
    const content = Buffer.from(`${header}.${base64url(canonicalJson(RECEIPT))}`);
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    expect(verify(null, content, key, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(verify(null, content.subarray(1), key, Buffer.from(signature, 'base64url'))).toBe(false);
  });

  test('with any one byte changed is refused, or still says exactly the same', () => {
    const file = bytesOf(FILE);
    fc.assert(
      fc.property(fc.nat(file.length - 1), fc.nat(254), (place, by) => {
        const bent = file.slice();
        bent[place] = ((bent[place] ?? 0) + by + 1) % 256;
        const check = checkReceipt(bent);
        // White space, and one way of writing a character for another.
        if (check.kind === 'intact') expect(check).toEqual({ kind: 'intact', receipt: RECEIPT, keyId: KEY.id });
      }),
      { numRuns: 400 },
    );
  });

  test('with any one character of its signature changed is refused', () => {
    const { signature } = SIGNED;
    const character = fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ');
    fc.assert(
      fc.property(fc.nat(signature.length - 1), character, (place, other) => {
        fc.pre(signature[place] !== other);
        const bent = signature.slice(0, place) + other + signature.slice(place + 1);
        expect(checkSigned({ receipt: RECEIPT, signature: bent }).kind).not.toBe('intact');
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    ['issuer', 'https://pay.example.org'],
    ['merchant', 'Cafe "Ö" 🍵'],
    ['chain', 'nile'],
    ['contract', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'],
    ['amount', '25.00001'],
    ['from', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
    ['to', 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'],
    ['transaction', { ...RECEIPT.transaction, txId: '0c'.repeat(32) }],
    ['transaction', { ...RECEIPT.transaction, logIndex: 1 }],
    ['transaction', { ...RECEIPT.transaction, blockNumber: 87_654_322 }],
    ['transaction', { ...RECEIPT.transaction, blockId: '0c'.repeat(32) }],
    ['transaction', { ...RECEIPT.transaction, blockTime: '2026-09-01T12:00:00.001Z' }],
  ])('with another %s is changed: %j', (name, value) => {
    expect(checkSigned({ ...SIGNED, receipt: { ...RECEIPT, [name]: value } })).toMatchObject({
      kind: 'changed',
      reason: expect.stringContaining('does not match'),
    });
  });
});

describe('what is no receipt of ours', () => {
  test.each([
    ['nothing', '', 'not JSON'],
    ['a list', '[]', 'no receipt'],
    ['null', 'null', 'no receipt'],
    ['a text', '"receipt"', 'no receipt'],
    ['half a file', FILE.slice(0, -20), 'not JSON'],
    ['a newer version', FILE.replace('"version": 1', '"version": 2'), 'version 2, but this release reads version 1'],
    ['one without a signature', JSON.stringify({ receipt: RECEIPT }), 'without a signature'],
    ['more than a receipt', FILE.replace('{', '{"note": "x",'), 'or more than a receipt'],
    ['a member of the prototype', FILE.replace('{', '{"__proto__": {},'), 'or more than a receipt'],
    ['an amount twice', FILE.replace('"amount"', '"amount": "1", "amount"'), 'contains a repeated name'],
    [
      'a block twice',
      FILE.replace('"blockNumber"', '"blockNumber": 1, "block\\u004eumber"'),
      'contains a repeated name',
    ],
    ['a receipt twice', FILE.replace('{', '{"receipt": {"amount": "1"},'), 'contains a repeated name'],
    ['a foreign member', FILE.replace('"asset"', '"invoiceId": "x", "asset"'), 'does not write'],
    ['an attached content', FILE.replace('..', '.e30.'), 'header..signature'],
    ['a fourth part', JSON.stringify({ ...SIGNED, signature: `${SIGNED.signature}.` }), 'header..signature'],
    ['no signature behind the dots', JSON.stringify({ ...SIGNED, signature: 'e30..' }), 'header..signature'],
    ['no dots', JSON.stringify({ ...SIGNED, signature: 'e30' }), 'header..signature'],
    ['a number for a signature', JSON.stringify({ ...SIGNED, signature: 7 }), 'without a signature'],
    ['a header that is null', JSON.stringify({ ...SIGNED, signature: 'bnVsbA..AAAA' }), 'not JSON in base64url'],
    ['a header that is a number', JSON.stringify({ ...SIGNED, signature: 'Nw..AAAA' }), 'not JSON in base64url'],
    ['a header that is no base64url', JSON.stringify({ ...SIGNED, signature: '{}..AAAA' }), 'not JSON in base64url'],
    ['a header that is not UTF-8', JSON.stringify({ ...SIGNED, signature: 'Iv8i..AAAA' }), 'not JSON in base64url'],
  ])('is refused: %s', (_name, text, reason) => {
    expect(checkText(text)).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining(reason) });
  });

  test('is refused: more than 64 KiB, and bytes that are not UTF-8', () => {
    expect(checkReceipt(new Uint8Array(MAX_RECEIPT_BYTES + 1).fill(32))).toMatchObject({
      reason: expect.stringContaining('65536 bytes'),
    });
    expect(checkReceipt(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ reason: expect.stringContaining('UTF-8') });
  });
});

describe('a header that is not the one of the key is refused', () => {
  const header = headerOf(SIGNED);
  test.each([
    ['no algorithm', { ...header, alg: 'none' }, 'EdDSA'],
    ['an algorithm with a shared secret', { ...header, alg: 'HS256' }, 'EdDSA'],
    ['critical extensions', { ...header, crit: ['b64'], b64: false }, 'differs from the header that Quittance writes'],
    ['the id of another key', { ...header, kid: 'A'.repeat(43) }, 'differs from the header that Quittance writes'],
    ['other white space or order', { kid: header.kid, ...header }, 'differs from the header that Quittance writes'],
    ['no key', { alg: 'EdDSA', kid: header.kid }, 'no Ed25519 key'],
    ['a key of another curve', { ...header, jwk: { ...header.jwk, crv: 'X25519' } }, 'no Ed25519 key'],
    ['a key of another type', { ...header, jwk: { ...header.jwk, kty: 'EC' } }, 'no Ed25519 key'],
    ['a key that is null', { ...header, jwk: null }, 'no Ed25519 key'],
    ['a key whose bytes are a number', { ...header, jwk: { ...header.jwk, x: 7 } }, 'no Ed25519 key'],
    ['a short key', { ...header, jwk: { ...header.jwk, x: 'AAAA' } }, 'no Ed25519 key'],
    ['another kind of statement', { ...header, typ: 'JWT' }, 'differs from the header that Quittance writes'],
    [
      'a key with bits that mean nothing',
      { ...header, jwk: { ...header.jwk, x: `${header.jwk.x.slice(0, -1)}p` } },
      'no',
    ],
  ])('%s', (_name, bent, reason) => {
    const check = withHeader(bent);
    expect(check.kind).not.toBe('intact');
    expect(check).toMatchObject({ reason: expect.stringContaining(reason) });
  });

  test('a key of small order, under which one signature fits every text', () => {
    const jwk = toJwk(hex(`01${'00'.repeat(31)}`));
    const weak = { alg: 'EdDSA', jwk, kid: receiptKeyId(jwk), typ: header.typ };
    const signature = Buffer.from(hex(`01${'00'.repeat(63)}`)).toString('base64url');
    const text = JSON.stringify({ receipt: RECEIPT, signature: `${base64url(canonicalJson(weak))}..${signature}` });
    expect(checkText(text)).toMatchObject({ kind: 'changed', reason: expect.stringContaining('does not match') });
  });

  test('a signature of another length, or in no base64url, fits nothing', () => {
    const [own = ''] = SIGNED.signature.split('..');
    for (const signature of ['AAAA', '!', 'A'.repeat(88)]) {
      expect(checkSigned({ receipt: RECEIPT, signature: `${own}..${signature}` })).toEqual({
        kind: 'changed',
        reason: 'the signature does not match: the receipt or the signature was changed after signing',
      });
    }
  });

  test('another key than the one that signed', () => {
    const other = signReceipt(RECEIPT, receiptKeyOf(new Uint8Array(32).fill(2)));
    const [, , signature] = SIGNED.signature.split('.');
    const swapped = `${other.signature.split('.')[0]}..${signature}`;
    expect(checkSigned({ receipt: RECEIPT, signature: swapped })).toMatchObject({ kind: 'changed' });
    expect(checkSigned(other)).toMatchObject({ kind: 'intact', keyId: expect.not.stringContaining(KEY.id) });
  });
});

/** RFC 8037, appendix A. */
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
