import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTransactionReference } from './transaction-reference.ts';

const ID = '0ca17a0da65cb2df52be4e5edd8654358f7ad2b6f083180e719784ff8ff1c8ae';

test.each([
  ID,
  ID.toUpperCase(),
  `  ${ID}\n`,
  `\u200b${ID}\ufeff`,
  `https://tronscan.org/#/transaction/${ID}`,
  `http://www.tronscan.org/#/transaction/${ID}/`,
  `https://tronscan.org/#/transaction/${ID.toUpperCase()}?lang=tr`,
  `https://tronscan.org/?lang=en#/transaction/${ID}`,
  `https://tronscan.io/#/transaction/${ID}/token-transfers`,
  `https://nile.tronscan.org/#/transaction/${ID}`,
  `shasta.tronscan.org/#/transaction/${ID}`,
  ` tronscan.org/transaction/${ID} `,
  `\u200b \u2060${ID}\u200f\t`,
  `https://tronscan.org/#/transaction/${ID}#top`,
])('%j names a transaction', (pasted) => {
  expect(readTransactionReference(pasted)).toEqual({ kind: 'id', txId: ID, hasPrefix: false });
});

test.each([`0x${ID}`, `0X${ID.toUpperCase()}`, ` 0x${ID}\n`])(
  '%j names a transaction of TRON, as some tools write it, or of Ethereum',
  (pasted) => {
    expect(readTransactionReference(pasted)).toEqual({ kind: 'id', txId: ID, hasPrefix: true });
  },
);

describe('transactions of other chains', () => {
  test.each([
    ['ethereum', `https://etherscan.io/tx/0x${ID}`],
    ['ethereum', `https://bscscan.com/tx/0x${ID}#eventlog`],
    ['ethereum', `0x${ID} on Ethereum`],
    ['ethereum', `etherscan.io/tx/0x${ID}`],
    ['ethereum', `see 0x${ID.toUpperCase()} there`],
    ['solana', `5${'1'.repeat(85)}`],
    ['ton', `${'-_+/'.repeat(10)}aB0=`],
    ['solana', '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW'],
    ['ton', 'WkgqyRnkCnzH1nNNnGQh4GfYE3cqrBVBiyCkTPt0hCQ='],
  ])('are recognised: %s %j', (looksLike, pasted) => {
    expect(readTransactionReference(pasted)).toEqual({ kind: 'not-tron', looksLike });
  });
});

describe('what names no transaction', () => {
  test.each([
    ['address', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
    ['address', '0xdAC17F958D2ee523a2206206994597C13D831ec7'],
    ['part-of-an-id', ID.slice(1)],
    ['part-of-an-id', `${ID.slice(0, 20)}…`],
    ['part-of-an-id', `${ID}0`],
    ['part-of-an-id', `0x${ID.slice(2)}`],
    ['link', `https://example.com/#/transaction/${ID}`],
    ['link', `https://tronscan.org.example.com/#/transaction/${ID}`],
    ['link', 'https://tronscan.org/#/address/TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
    ['link', 'https://x'],
    ['link', 'http://x'],
    ['link', `https://tronscan.org/#/transaction/${ID}0`],
    ['link', `https://tronscan.org/#/transaction/${ID} x`],
    ['link', `https://xtronscan.org/#/transaction/${ID}`],
    ['link', `https://tronscan.org/x/transaction/${ID}`],
    ['link', `https://etherscan.io/tx/0x${ID}0`],
    ['other', `x https://tronscan.org/#/transaction/${ID}`],
    ['other', `tronscan_org/transaction/${ID}`],
    ['other', `x${ID}`],
    ['other', `x0x${ID}`],
    ['other', `a0x${ID}`],
    ['part-of-an-id', ID.slice(0, 16)],
    ['other', ID.slice(0, 15)],
    ['other', `${ID.slice(0, 20)}……`],
    ['other', `x${ID.slice(0, 20)}`],
    ['other', `xTR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t`],
    ['other', `TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6tx`],
    ['other', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6'],
    ['other', 'z'.repeat(89)],
    ['other', 'z'.repeat(85)],
    ['other', `0${'z'.repeat(86)}`],
    ['other', 'WkgqyRnkCnzH1nNNnGQh4GfYE3cqrBVBiyCkTPt0hCQ'],
    ['other', 'xWkgqyRnkCnzH1nNNnGQh4GfYE3cqrBVBiyCkTPt0hCQ='],
    ['other', 'WkgqyRnkCnzH1nNNnGQh4GfYE3cqrBVBiyCkTPt0hCQ=x'],
    ['other', 'x https://x'],
    ['other', ''],
    ['other', '25.000137'],
    ['other', `${ID} ${ID}`],
    ['other', 'x'.repeat(100_000)],
  ])('is told apart: %s %j', (looksLike, pasted) => {
    expect(readTransactionReference(pasted)).toMatchObject({ kind: 'none', looksLike });
  });

  test('the length of a part of an id is told without the space around it', () => {
    expect(readTransactionReference(` ${ID.slice(1)} `)).toMatchObject({ characters: 63 });
  });

  test('of any other text all characters are told, and the longest is not looked at', () => {
    expect(readTransactionReference(' x ')).toEqual({ kind: 'none', looksLike: 'other', characters: 3 });
    expect(readTransactionReference(ID.padEnd(500))).toMatchObject({ kind: 'id' });
    expect(readTransactionReference(ID.padEnd(501))).toEqual({ kind: 'none', looksLike: 'other', characters: 501 });
  });
});

test('any text is borne, and only an id comes out as one', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 600 })), (text) => {
      const read = readTransactionReference(text);
      if (read.kind === 'id') expect(read.txId).toMatch(/^[0-9a-f]{64}$/);
    }),
  );
});
