import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { txTrieRoot } from './merkle.ts';
import { contractRetName, encodeTransaction, transactionFromJson } from './transaction.ts';
import { splitTransaction, transactionBytes } from './transaction-bytes.ts';

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

test('a thousand signatures and a thousand results, as a stranger may add, are the most that is read', () => {
  const given = { raw_data_hex: '0a', signature: Array(1000).fill('00'), ret: Array(1000).fill({}) };
  expect(transactionBytes(given)?.whole).toHaveLength(3 + 1000 * 3 + 1000 * 2);
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
  ['1,001 signatures', { ...json, signature: Array(1001).fill('00') }],
  ['results that are no list', { ...json, ret: {} }],
  ['two signatures, of which the first is no hex', { ...json, signature: ['zz', '00'] }],
  ['1,001 results', { ...json, ret: Array(1001).fill({}) }],
])('a transaction with %s is refused', (_what, given) => {
  expect(transactionBytes(given)).toBeNull();
});

test.each<[string, unknown, string]>([
  ['null', null, ''],
  ['a text', 'SUCESS', ''],
  ['one with a ret that is a number', { ret: 1 }, ''],
  ['one with a ret in a list', { ret: ['FAILED'] }, ''],
  ['one with a contractRet in a list', { contractRet: ['SUCCESS'] }, ''],
  ['one with a contractRet that is not known', { contractRet: 'FINE' }, ''],
  ['one with a fee that is a text', { fee: '1', contractRet: 'SUCCESS' }, '1801'],
  ['one with a fee that is no integer', { fee: 0.5 }, ''],
  ['one with a fee that was rounded', { fee: 2 ** 53 }, ''],
  ['one with an amount that is no number', { unfreeze_amount: {} }, ''],
  ['one with a member that is not encoded', { contractRet: 'SUCCESS', orderId: '6f72' }, '1801'],
])('a result that is %s is encoded as far as it can be, for the root decides', (_what, result, hex) => {
  const bytes = hex.replaceAll(' ', '');
  const { whole, isSuccess } = transactionBytes({ raw_data_hex: '0a', ret: [result] }) ?? {};
  expect(bytesToHex(whole ?? new Uint8Array(0))).toBe(
    `0a010a2a${(bytes.length / 2).toString(16).padStart(2, '0')}${bytes}`,
  );
  expect(isSuccess).toBe(bytes.endsWith('1801'));
});

test('what is encoded from JSON is split into the same parts', () => {
  fc.assert(
    fc.property(transaction, (given) => {
      const encoded = transactionBytes(given);
      expect(splitTransaction(encoded?.whole ?? new Uint8Array(0))).toEqual(encoded);
    }),
  );
});

test.each([
  [
    'fields that java-tron does not know, of any wire type',
    '0a010a1202ffff2a021801300139000000000000000045000000000b08010c',
    true,
  ],
  ['a result with a field that is not known', '0a010a2a051801d03e01', true],
  ['a contractRet behind another field of the result', '0a010a2a0a1206abababababab1801', true],
  ['the last of two contractRets', '0a010a2a0418061801', true],
  ['the first of two results', '0a010a2a0218012a021806', true],
  ['the first of two results, which failed', '0a010a2a0218062a021801', false],
  ['no result', '0a010a', false],
  ['an empty result', '0a010a2a00', false],
])('bytes with %s are a transaction', (_what, hex, isSuccess) => {
  const whole = hexToBytes(hex);
  expect(splitTransaction(whole)).toMatchObject({ whole, rawData: Uint8Array.of(10), isSuccess });
});

test.each([
  ['nothing', ''],
  ['no raw_data', '12010a2a021801'],
  ['an empty raw_data', '0a00'],
  ['two raw_datas', '0a010a0a010a'],
  ['a length beyond the end', '0a020a'],
  ['a group that stays open', '0a010a0b'],
  ['a result that is no message', '0a010a2a020aff'],
  ['field number 0', '0a010a0001'],
])('bytes with %s are none', (_what, hex) => {
  expect(splitTransaction(hexToBytes(hex))).toBeNull();
});
