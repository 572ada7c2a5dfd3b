import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { txTrieRoot } from './merkle.ts';
import { contractRetName, encodeTransaction, transactionFromJson } from './transaction.ts';
import { transactionBytes } from './transaction-bytes.ts';

const hex = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('hex'));
const result = fc.record(
  {
    fee: fc.maxSafeInteger(),
    ret: fc.constantFrom('SUCESS', 'FAILED'),
    contractRet: fc.nat(15).map((number) => contractRetName(number) ?? 'DEFAULT'),
  },
  { requiredKeys: [] },
);
const transaction = fc.record(
  { raw_data_hex: hex, signature: fc.array(hex, { maxLength: 5 }), ret: fc.array(result, { maxLength: 2 }) },
  { requiredKeys: ['raw_data_hex'] },
);

/** The only transaction of a block of a private java-tron network. */
const json = {
  ret: [{ contractRet: 'SUCCESS' }],
  signature: [
    '755e1552868a1734c90c28dacb66e58f85eaa5fc2845593280e3b6ee1cf1b7af793cc378d8c3ad144542502270ab852095665abfffdea306200a9942a67e161401',
  ],
  raw_data_hex:
    '0a0200a42208b0ef6ad98a02403e40b8e1e8d38f345a57083b12530a38747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e43616e63656c416c6c556e667265657a655632436f6e747261637412170a1541dcf2957055e8fcde477a077ecfeddf5ab235754770a1899cbf8f34',
};

test('the bytes of a real transaction are the root of its block', () => {
  const bytes = transactionBytes(json);
  expect(txTrieRoot([bytes?.whole ?? new Uint8Array(0)])).toBe(
    'c85f5050cb4a05c58222017f823191d5ae1ca07b7bd7f090f493a35c10f03491',
  );
  expect(bytesToHex(bytes?.rawData ?? new Uint8Array(0))).toBe(json.raw_data_hex);
  expect(bytes?.isSuccess).toBe(true);
});

test('the bytes are those of the encoder that goes through a Transaction', () => {
  fc.assert(
    fc.property(transaction, (given) => {
      const expected = transactionFromJson(given);
      const bytes = transactionBytes(given);
      expect(bytes?.whole).toEqual(expected === null ? undefined : encodeTransaction(expected));
      expect(bytes?.rawData).toEqual(hexToBytes(given.raw_data_hex));
      expect(bytes?.isSuccess).toBe(given.ret?.[0]?.contractRet === 'SUCCESS');
    }),
  );
});

test('results with the integers that a sender may have filled in are encoded whole', () => {
  const given = {
    raw_data_hex: '0a',
    ret: [{ contractRet: 'SUCCESS', unfreeze_amount: 300, withdraw_expire_amount: -1 }],
  };
  const expected = `0a010a${'2a12'}${'1801'}${'8001ac02'}${'d801ffffffffffffffffff01'}`;
  expect(bytesToHex(transactionBytes(given)?.whole ?? new Uint8Array(0))).toBe(expected);
});

test.each([
  ['withdraw_amount', '780a'],
  ['unfreeze_amount', '80010a'],
  ['exchange_received_amount', '90010a'],
  ['exchange_inject_another_amount', '98010a'],
  ['exchange_withdraw_another_amount', 'a0010a'],
  ['exchange_id', 'a8010a'],
  ['shielded_transaction_fee', 'b0010a'],
  ['withdraw_expire_amount', 'd8010a'],
])('%s of a result is one of its fields', (name, bytes) => {
  const { whole } = transactionBytes({ raw_data_hex: '0a', ret: [{ [name]: 10 }] }) ?? {};
  expect(bytesToHex(whole ?? new Uint8Array(0))).toBe(`0a010a2a${String(bytes.length / 2).padStart(2, '0')}${bytes}`);
});

test('integers are written at every size of a varint', () => {
  const sizes = fc.integer({ min: 1, max: 52 }).chain((bits) => fc.integer({ min: 2 ** (bits - 1), max: 2 ** bits }));
  fc.assert(
    fc.property(sizes, fc.boolean(), (size, isNegative) => {
      const fee = isNegative ? -size : size;
      const given = { raw_data_hex: '0a', ret: [{ fee }] };
      const expected = encodeTransaction({
        rawData: Uint8Array.of(10),
        signatures: [],
        results: [{ feeSun: BigInt(fee), ret: 0, contractRet: 0 }],
      });
      expect(transactionBytes(given)?.whole).toEqual(expected);
    }),
  );
});

test('raw_data and signatures of 127, 128 and 16,384 bytes have lengths of one, two and three bytes', () => {
  for (const size of [127, 128, 16_384]) {
    const given = { raw_data_hex: 'ab'.repeat(size), signature: ['cd'.repeat(size)], ret: [] };
    const expected = transactionFromJson(given);
    expect(transactionBytes(given)?.whole).toEqual(expected && encodeTransaction(expected));
    expect(transactionBytes(given)?.rawData).toHaveLength(size);
  }
});

test('eight signatures and eight results are the most that is read', () => {
  const given = { raw_data_hex: '0a', signature: Array(8).fill('00'), ret: Array(8).fill({}) };
  expect(transactionBytes(given)?.whole).toHaveLength(3 + 8 * 3 + 8 * 2);
});

test('the array is no larger than the transaction and a few bytes for each of its parts', () => {
  const given = { raw_data_hex: 'ab'.repeat(500), signature: ['cd'.repeat(65)], ret: [{ fee: 1 }] };
  expect(transactionBytes(given)?.whole.buffer.byteLength).toBeLessThan(500 + 65 + 2 + 4 * 6);
});

test.each<[string, unknown]>([
  ['nothing', null],
  ['a text', 'x'],
  ['no raw_data_hex', { ...json, raw_data_hex: undefined }],
  ['an empty raw_data_hex', { ...json, raw_data_hex: '' }],
  ['half a byte', { ...json, raw_data_hex: '0a0' }],
  ['a number for hex', { ...json, raw_data_hex: 12 }],
  ['signatures that are no list', { ...json, signature: '00' }],
  ['a signature that is no hex', { ...json, signature: ['zz'] }],
  ['a signature that is no text', { ...json, signature: [null] }],
  ['nine signatures', { ...json, signature: Array(9).fill('00') }],
  ['results that are no list', { ...json, ret: {} }],
  ['a null result', { ...json, ret: [null] }],
  ['a result that is a text', { ...json, ret: ['SUCESS'] }],
  ['a ret that is a number', { ...json, ret: [{ ret: 0 }] }],
  ['a contractRet in a list', { ...json, ret: [{ contractRet: ['SUCCESS'] }] }],
  ['a ret in a list', { ...json, ret: [{ ret: ['SUCESS'] }] }],
  ['a fee that is a text', { ...json, ret: [{ fee: '1' }] }],
  ['two signatures, of which the first is no hex', { ...json, signature: ['zz', '00'] }],
  ['nine results', { ...json, ret: Array(9).fill({}) }],
  ['an unknown contractRet', { ...json, ret: [{ contractRet: 'FINE' }] }],
  ['an unknown ret', { ...json, ret: [{ ret: 'SUCCESS' }] }],
  ['a fee that is no integer', { ...json, ret: [{ fee: 0.5 }] }],
  ['a fee over 2^53', { ...json, ret: [{ fee: 2 ** 53 }] }],
  ['an amount that is no number', { ...json, ret: [{ unfreeze_amount: '1' }] }],
])('a transaction with %s is refused', (_what, given) => {
  expect(transactionBytes(given)).toBeNull();
});
