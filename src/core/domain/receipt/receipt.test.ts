import { expect, test } from 'vitest';
import { type Receipt, readReceipt } from './receipt.ts';

const RECEIPT: Receipt = {
  version: 1,
  issuer: 'https://pay.example.com',
  merchant: 'Shop',
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
    blockNumber: 0,
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
