import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAmount, microUsdt } from '../money.ts';
import { comparePasted, readFee, readTransactionReference } from './pasted.ts';

const ADDRESS = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY';

test.each([
  [ADDRESS, 'same'],
  [` ${ADDRESS}\n`, 'same'],
  [`\u200e${ADDRESS}\ufeff`, 'same'],
  [`\u200b \u2060${ADDRESS}\u200f\t\n`, 'same'],
  [`${ADDRESS.slice(0, 5)} ${ADDRESS.slice(5)}`, 'no-address'],
  [`to ${ADDRESS}`, 'no-address'],
  ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 'other'],
  // One letter differs, so the checksum does not fit.
  ['TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZX', 'no-address'],
  [ADDRESS.toLowerCase(), 'no-address'],
  [ADDRESS.slice(0, -1), 'no-address'],
  [`${ADDRESS} ${ADDRESS}`, 'no-address'],
  ['0xdAC17F958D2ee523a2206206994597C13D831ec7', 'no-address'],
  ['', 'no-address'],
])('%j is %s', (pasted, expected) => {
  expect(comparePasted(ADDRESS, pasted)).toBe(expected);
});

test.each([
  ['1', 1_000_000n],
  ['0', 0n],
  ['1.5', 1_500_000n],
  ['1,5', 1_500_000n],
  [' 0.000001 USDT ', 1n],
  ['1USDT', 1_000_000n],
  ['1  usdt', 1_000_000n],
  ['\u200e1.5\u200f', 1_500_000n],
  ['۱٫۵', 1_500_000n],
  ['１．５', 1_500_000n],
  ['１，５ ＵＳＤＴ', 1_500_000n],
  ['٢', 2_000_000n],
  ['999999.999999', 999_999_999_999n],
])('a fee typed as %j is %d millionths', (text, micro) => {
  expect(readFee(text)).toBe(micro);
});

test.each([
  '',
  'one',
  '-1',
  '+1',
  '1e3',
  '1.2345678',
  '1,000,5',
  '1.',
  '.5',
  '1000000',
  '1%',
  '1 5',
  '1usdt5',
  '1'.repeat(5000),
])('what is no fee is refused: %j', (text) => {
  expect(readFee(text)).toBeNull();
});

test('every amount that is written with a point is read back', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 999_999_999_999n }), (micro) => {
      expect(readFee(formatAmount(microUsdt(micro)))).toBe(micro);
    }),
  );
});

test('any text is borne', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      readFee(text);
    }),
  );
});

const ID = '0ca17a0da65cb2df52be4e5edd8654358f7ad2b6f083180e719784ff8ff1c8ae';

const [FIRST_HALF, SECOND_HALF] = [ID.slice(0, 32), ID.slice(32)];

describe('the one id in a text is read', () => {
  test.each([
    ID,
    ID.toUpperCase(),
    `  ${ID}\n`,
    `\u200b${ID}\ufeff`,
    `\u200b \u2060${ID}\u200f\t`,
    `TxID: ${ID}`,
    `TXID ${ID}`,
    `Transaction Hash:${ID}`,
    `交易哈希${ID}`,
    `${ID} (TRC20)`,
    `"${ID}"`,
    `“${ID}”`,
    `${ID} ${ID.toUpperCase()}`,
    `${ID.slice(0, 40)} ${ID.slice(40)}`,
    `${FIRST_HALF}\n${SECOND_HALF}`,
    `TxID: ${FIRST_HALF}\r\n  ${SECOND_HALF} 25.00`,
    `added ${ID.slice(0, 61)}\n${ID.slice(61)}`,
    `${FIRST_HALF}\u200b${SECOND_HALF}`,
    ID.replace(/[0-9]/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
    `https://explorer.example/transaction/${ID}`,
    `https://tronscan.org.example.com/#/transaction/${ID}`,
    `tx_${ID}`,
  ])('%j', (pasted) => {
    expect(readTransactionReference(pasted)).toEqual({ kind: 'id', txId: ID, hasPrefix: false, linkTo: null });
  });

  test.each([
    `0x${ID}`,
    `0X${ID.toUpperCase()}`,
    ` 0x${ID}\n`,
    `0x${ID} on Ethereum`,
    `see 0x${ID.toUpperCase()} there`,
    `https://explorer.example/tx/0x${ID}`,
    `https://optimistic.etherscan.io/tx/0x${ID}`,
  ])('%j, as some tools write it, or one of Ethereum', (pasted) => {
    expect(readTransactionReference(pasted)).toEqual({ kind: 'id', txId: ID, hasPrefix: true, linkTo: null });
  });

  test.each([
    ['mainnet', `https://tronscan.org/#/transaction/${ID}`],
    ['mainnet', `http://www.tronscan.org/#/transaction/${ID}/`],
    ['mainnet', `https://tronscan.org/#/transaction/${ID.toUpperCase()}?lang=tr`],
    ['mainnet', `https://tronscan.org/?lang=en#/transaction/${ID}`],
    ['mainnet', `https://tronscan.io/#/transaction/${ID}/token-transfers`],
    ['mainnet', `https://tronscan.org/#/transaction/${ID}#top`],
    ['mainnet', ` tronscan.org/transaction/${ID} `],
    ['mainnet', `see https://tronscan.org/#/transaction/${ID} please`],
    ['mainnet', `https://tronscan.org/#/transaction/0x${ID}`],
    ['mainnet', `https://www.oklink.com/tron/tx/${ID}`],
    ['mainnet', `https://www.oklink.com/trx/tx/${ID}`],
    ['mainnet', `https://www.oklink.com/zh-hans/trx/tx/${ID}`],
    ['mainnet', `https://tron.tokenview.io/en/tx/${ID}`],
    ['nile', `https://nile.tronscan.org/#/transaction/${ID}`],
    ['shasta', `shasta.tronscan.org/#/transaction/${ID}`],
    ['shasta', `https://shasta.tronscan.org/#/transaction/${ID}`],
  ])('and the network of its link: %s, %j', (linkTo, pasted) => {
    expect(readTransactionReference(pasted)).toMatchObject({ kind: 'id', txId: ID, linkTo });
  });
});

describe('transactions of other chains', () => {
  test.each([
    ['ethereum', `https://etherscan.io/tx/0x${ID}`],
    ['ethereum', `https://www.oklink.com/eth/tx/0x${ID}`],
    ['bsc', `https://bscscan.com/tx/0x${ID}#eventlog`],
    ['bsc', `https://www.oklink.com/zh-hans/bsc/tx/0x${ID}`],
    ['polygon', `https://polygonscan.com/tx/0x${ID}`],
    ['polygon', `https://www.oklink.com/polygon/tx/0x${ID}`],
    ['ethereum', `etherscan.io/tx/0x${ID}`],
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
    ['link', 'https://tronscan.org/#/address/TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'],
    ['link', 'https://x'],
    ['link', 'http://x'],
    ['link', `https://tronscan.org/#/transaction/${ID}0`],
    ['link', `https://etherscan.io/tx/0x${ID}0`],
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
    ['other', `${ID} ${ID.replace('0', '1')}`],
    ['other', `add ${ID.slice(0, 61)}\n${ID.slice(61)}`],
    ['other', `${FIRST_HALF}, ${SECOND_HALF}`],
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
