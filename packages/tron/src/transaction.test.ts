import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { txTrieRoot } from './merkle.ts';
import { recoverSigner } from './signature.ts';
import {
  contractRetName,
  contractRetNumber,
  decodeTransaction,
  encodeTransaction,
  type Transaction,
  transactionFromJson,
  txIdOf,
} from './transaction.ts';

/** The only transaction of a block of a private java-tron network. */
const json = {
  ret: [{ contractRet: 'SUCCESS' }],
  signature: [
    '755e1552868a1734c90c28dacb66e58f85eaa5fc2845593280e3b6ee1cf1b7af793cc378d8c3ad144542502270ab852095665abfffdea306200a9942a67e161401',
  ],
  raw_data_hex:
    '0a0200a42208b0ef6ad98a02403e40b8e1e8d38f345a57083b12530a38747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e43616e63656c416c6c556e667265657a655632436f6e747261637412170a1541dcf2957055e8fcde477a077ecfeddf5ab235754770a1899cbf8f34',
};
const root = 'c85f5050cb4a05c58222017f823191d5ae1ca07b7bd7f090f493a35c10f03491';

function read(given: Parameters<typeof transactionFromJson>[0]): Transaction {
  const transaction = transactionFromJson(given);
  if (transaction === null) throw new Error('the transaction was refused');
  return transaction;
}

test('the one transaction of a real block is its txTrieRoot', () => {
  expect(txTrieRoot([encodeTransaction(read(json))])).toBe(root);
});

test('the root commits to the result: without it, or with another, the root differs', () => {
  expect(txTrieRoot([encodeTransaction(read({ ...json, ret: [] }))])).not.toBe(root);
  expect(txTrieRoot([encodeTransaction(read({ ...json, ret: [{ contractRet: 'REVERT' }] }))])).not.toBe(root);
});

test('the signature of a real transaction gives its owner', () => {
  expect(recoverSigner(read(json).rawData, json.signature[0] ?? '')).toBe('dcf2957055e8fcde477a077ecfeddf5ab2357547');
});

test('the id is the hash of raw_data only', () => {
  expect(txIdOf(utf8ToBytes('abc'))).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(txIdOf(read(json).rawData)).toBe(txIdOf(read({ raw_data_hex: json.raw_data_hex }).rawData));
});

test('a transaction reads back from its bytes', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 80 });
  const result = fc.record({ feeSun: fc.bigInt(0n, 2n ** 62n), ret: fc.nat(1), contractRet: fc.nat(15) });
  fc.assert(
    fc.property(
      fc.record({
        rawData: bytes,
        signatures: fc.array(bytes, { maxLength: 3 }),
        results: fc.array(result, { maxLength: 2 }),
      }),
      (transaction) => {
        expect(decodeTransaction(encodeTransaction(transaction))).toEqual(transaction);
      },
    ),
  );
});

test('arbitrary bytes are read or refused, never thrown at', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 120 }), (bytes) => {
      decodeTransaction(bytes);
    }),
  );
  expect(decodeTransaction(hexToBytes('0a05ff'))).toBeNull();
  expect(decodeTransaction(hexToBytes('1201ff'))).toBeNull();
  expect(decodeTransaction(hexToBytes('0a01012a01ff'))).toBeNull();
});

test('what a node leaves out is nothing, and a result that failed is told apart', () => {
  const bare = read({ raw_data_hex: '0a' });
  expect(bare).toEqual({ rawData: Uint8Array.of(10), signatures: [], results: [] });
  expect(read({ raw_data_hex: '0a', ret: [{}, { ret: 'FAILED', contractRet: 'REVERT', fee: 5 }] }).results).toEqual([
    { feeSun: 0n, ret: 0, contractRet: 0 },
    { feeSun: 5n, ret: 1, contractRet: 2 },
  ]);
});

test('a name or a hex string that no node writes is refused', () => {
  expect(transactionFromJson({ ...json, ret: [{ contractRet: 'FINE' }] })).toBeNull();
  expect(transactionFromJson({ ...json, ret: [{ ret: 'SUCCESS' }] })).toBeNull();
  expect(transactionFromJson({ ...json, ret: [{ fee: 0.5 }] })).toBeNull();
  expect(transactionFromJson({ ...json, raw_data_hex: '0a0' })).toBeNull();
  expect(transactionFromJson({ ...json, raw_data_hex: '' })).toBeNull();
  expect(transactionFromJson({ ...json, signature: ['zz'] })).toBeNull();
  expect(transactionFromJson({ ...json, signature: Array(9).fill('00') })).toBeNull();
  expect(transactionFromJson({ ...json, ret: Array(9).fill({}) })).toBeNull();
  const most = read({ ...json, signature: Array(8).fill('00'), ret: Array(8).fill({}) });
  expect([most.signatures.length, most.results.length]).toEqual([8, 8]);
});

test('contractRet names and numbers are one to one', () => {
  for (let number = 0; number <= 15; number += 1) {
    expect(contractRetNumber(contractRetName(number) ?? '')).toBe(number);
  }
  expect([
    contractRetNumber('SUCCESS'),
    contractRetNumber('OUT_OF_ENERGY'),
    contractRetNumber('TRANSFER_FAILED'),
  ]).toEqual([1, 10, 14]);
  expect(contractRetName(16)).toBeNull();
  expect(bytesToHex(encodeTransaction({ rawData: Uint8Array.of(1), signatures: [], results: [] }))).toBe('0a0101');
});
