import { hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountHex } from './address.ts';
import { type ContractCall, decodeRawTransaction, encodeRawTransaction } from './raw-transaction.ts';

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => Buffer.from(value).toString('hex'));
const account = hex(20) as fc.Arbitrary<AccountHex>;
const int64 = fc.bigInt(0n, 2n ** 63n - 1n);
const call: fc.Arbitrary<ContractCall> = fc.oneof(
  fc.record({
    kind: fc.constant('trigger' as const),
    owner: account,
    contract: account,
    data: fc.nat(100).chain(hex),
    callValueSun: int64,
  }),
  fc.record({ kind: fc.constant('transfer' as const), owner: account, to: account, amountSun: int64 }),
);
const raw = fc.record({
  refBlockBytes: hex(2),
  refBlockHash: hex(8),
  expirationMs: fc.maxSafeNat(),
  timestampMs: fc.maxSafeNat(),
  feeLimitSun: int64,
  memo: fc.nat(20).chain(hex),
  permissionId: fc.nat(5),
  contract: call,
});

test('raw_data reads back from its bytes, with amounts beyond 2^53 intact', () => {
  fc.assert(
    fc.property(raw, (given) => {
      expect(decodeRawTransaction(encodeRawTransaction(given))).toEqual(given);
    }),
  );
});

test('a real raw_data of another contract type is read as such', () => {
  const real =
    '0a0200a42208b0ef6ad98a02403e40b8e1e8d38f345a57083b12530a38747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e43616e63656c416c6c556e667265657a655632436f6e747261637412170a1541dcf2957055e8fcde477a077ecfeddf5ab235754770a1899cbf8f34';
  const decoded = decodeRawTransaction(hexToBytes(real));
  expect(decoded).toMatchObject({
    refBlockBytes: '00a4',
    refBlockHash: 'b0ef6ad98a02403e',
    contract: { kind: 'other', type: 59 },
  });
  if (decoded !== null) expect(() => encodeRawTransaction(decoded)).toThrow('type 59');
});

test('cut or arbitrary bytes are read or refused, never thrown at', () => {
  fc.assert(
    fc.property(raw, fc.nat(), (given, cut) => {
      const bytes = encodeRawTransaction(given);
      decodeRawTransaction(bytes.subarray(0, cut % bytes.length));
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      decodeRawTransaction(bytes);
    }),
  );
});

test('two contracts in one transaction are refused, as java-tron does', () => {
  const one = '5a0208015a020801';
  expect(decodeRawTransaction(hexToBytes(one))).toBeNull();
  expect(decodeRawTransaction(new Uint8Array(0))).toBeNull();
});
