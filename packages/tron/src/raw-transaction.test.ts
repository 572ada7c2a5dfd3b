import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountHex } from './address.ts';
import { writeElement, writeInt64 } from './protobuf.ts';
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

const field = (number: number, bytes: Uint8Array) => writeElement(number, bytes);
const accountBytes = hexToBytes(`41${'7e'.repeat(20)}`);
const transferOf = (...fields: Uint8Array[]) => rawOf(writeInt64(1, 1), field(2, field(2, concatBytes(...fields))));
const rawOf = (...contract: Uint8Array[]) => field(11, concatBytes(...contract));

test('a transfer is read from the bytes of its fields', () => {
  expect(decodeRawTransaction(transferOf(field(1, accountBytes), field(2, accountBytes), writeInt64(3, 5)))).toEqual({
    refBlockBytes: '',
    refBlockHash: '',
    expirationMs: 0,
    timestampMs: 0,
    feeLimitSun: 0n,
    memo: '',
    permissionId: 0,
    contract: { kind: 'transfer', owner: '7e'.repeat(20), to: '7e'.repeat(20), amountSun: 5n },
  });
});

test.each([
  ['without an owner', transferOf(field(2, accountBytes))],
  ['without a receiver', transferOf(field(1, accountBytes))],
  ['with an owner of another prefix', transferOf(field(1, hexToBytes('00'.repeat(21))), field(2, accountBytes))],
  ['whose parameter is no message', rawOf(writeInt64(1, 1), field(2, Uint8Array.of(255)))],
  ['whose value is no message', rawOf(writeInt64(1, 1), field(2, field(2, Uint8Array.of(255))))],
  ['whose contract is no message', field(11, Uint8Array.of(255))],
  ['beside another contract', concatBytes(rawOf(writeInt64(1, 59)), rawOf(writeInt64(1, 59)))],
  ['that expires beyond 2^53', concatBytes(writeInt64(8, 2n ** 53n), rawOf(writeInt64(1, 59)))],
  ['made beyond 2^53', concatBytes(rawOf(writeInt64(1, 59)), writeInt64(14, 2n ** 53n))],
])('a transaction %s is refused', (_what, rawData) => {
  expect(decodeRawTransaction(rawData)).toBeNull();
});

test('the type of a parameter is named as java-tron names it', () => {
  const nobody = '00'.repeat(20) as AccountHex;
  const typeOf = (contract: ContractCall) => {
    const rest = { refBlockBytes: '', refBlockHash: '', expirationMs: 0, timestampMs: 0, feeLimitSun: 0n, memo: '' };
    const bytes = encodeRawTransaction({ ...rest, permissionId: 0, contract });
    return /type\.googleapis\.com\/protocol\.(\w*)/.exec(Buffer.from(bytes).toString('latin1'))?.[1];
  };
  expect(typeOf({ kind: 'transfer', owner: nobody, to: nobody, amountSun: 0n })).toBe('TransferContract');
  expect(typeOf({ kind: 'trigger', owner: nobody, contract: nobody, data: '', callValueSun: 0n })).toBe(
    'TriggerSmartContract',
  );
});
