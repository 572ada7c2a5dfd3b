import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountHex } from './address.ts';
import { writeElement, writeInt64 } from './protobuf.ts';
import { encodeRawTransaction } from './raw-transaction.ts';
import { readContract } from './read-contract.ts';

const CONTRACT = 'a614f803b6fd780986a42c78ec9c7f77e6ded13c';
const OWNER = '7e5f4552091a69125d5dfcb7b8c2659029395bdf';
const contract = hexToBytes(`41${CONTRACT}`);
const owner = hexToBytes(`41${OWNER}`);
const data = hexToBytes('a9059cbb');

const URL = 'type.googleapis.com/protocol.TriggerSmartContract';
const trigger = concatBytes(writeElement(1, owner), writeElement(2, contract), writeElement(4, data));
const any = (value: Uint8Array = trigger, url = URL) =>
  concatBytes(writeElement(1, utf8ToBytes(url)), writeElement(2, value));
const call = (parameter: Uint8Array = any(), type = 31) => concatBytes(writeInt64(1, type), writeElement(2, parameter));
const raw = (...contracts: Uint8Array[]) =>
  concatBytes(
    writeElement(1, Uint8Array.of(1, 2)),
    ...contracts.map((each) => writeElement(11, each)),
    writeInt64(14, 7),
  );

const accepted = { type: 31, call: { owner: OWNER, calldata: data } };

test('a call of the contract asked about is read', () => {
  expect(readContract(raw(call()), contract)).toEqual(accepted);
});

test('what our encoder writes is read, with any amount, memo and permission', () => {
  fc.assert(
    fc.property(
      fc.nat(9),
      fc.bigInt(0n, 2n ** 62n),
      fc.uint8Array({ maxLength: 200 }),
      (permissionId, sun, calldata) => {
        const rawData = encodeRawTransaction({
          refBlockBytes: '0102',
          refBlockHash: '03',
          expirationMs: 5,
          timestampMs: 6,
          feeLimitSun: sun,
          memo: 'aa',
          permissionId,
          contract: {
            kind: 'trigger',
            owner: OWNER as AccountHex,
            contract: CONTRACT as AccountHex,
            data: Buffer.from(calldata).toString('hex'),
            callValueSun: sun,
          },
        });
        const read = readContract(rawData, contract);
        expect(read).toEqual({ type: 31, call: calldata.length === 0 ? null : { owner: OWNER, calldata } });
      },
    ),
  );
});

const other = hexToBytes(`41${'11'.repeat(20)}`);

test.each<[string, Uint8Array]>([
  [
    'another contract',
    raw(call(any(concatBytes(writeElement(1, owner), writeElement(2, other), writeElement(4, data))))),
  ],
  ['another type', raw(call(any(), 30))],
  ['another type_url', raw(call(any(trigger, 'type.googleapis.com/protocol.TransferContract')))],
  ['a type_url of another host', raw(call(any(trigger, `evil/${URL}`)))],
  ['no type_url', raw(call(writeElement(2, trigger)))],
  ['no parameter', raw(writeInt64(1, 31))],
  ['no calldata', raw(call(any(concatBytes(writeElement(1, owner), writeElement(2, contract)))))],
  ['no owner', raw(call(any(concatBytes(writeElement(2, contract), writeElement(4, data)))))],
  ['an unknown field in the call', raw(call(any(concatBytes(trigger, writeInt64(9, 1)))))],
  ['an unknown field in raw_data', concatBytes(raw(call()), writeInt64(20, 1))],
  ['an unknown field in the contract', raw(concatBytes(call(), writeInt64(9, 1)))],
  ['an unknown field in the parameter', raw(call(concatBytes(any(), writeInt64(3, 1))))],
  ['calldata twice', raw(call(any(concatBytes(trigger, writeElement(4, Uint8Array.of(1))))))],
  ['the contract’s address twice', raw(call(any(concatBytes(trigger, writeElement(2, other)))))],
  ['two parameters, which protobuf merges', raw(concatBytes(call(), writeElement(2, any())))],
  ['two values in the parameter', raw(call(concatBytes(any(), writeElement(2, trigger))))],
  ['a field of four bytes in the call', raw(call(any(concatBytes(trigger, hexToBytes('3d01020304')))))],
  [
    'a call value of another wire type',
    raw(
      call(
        any(
          concatBytes(writeElement(1, owner), writeElement(2, contract), writeElement(3, data), writeElement(4, data)),
        ),
      ),
    ),
  ],
  [
    'a length longer than it must be',
    raw(call(any(concatBytes(writeElement(1, owner), writeElement(2, contract), hexToBytes('228400a9059cbb'))))),
  ],
  ['bytes after the call', raw(call(any(concatBytes(trigger, Uint8Array.of(0)))))],
  [
    'an owner of another prefix',
    raw(
      call(
        any(concatBytes(writeElement(1, hexToBytes(`a0${OWNER}`)), writeElement(2, contract), writeElement(4, data))),
      ),
    ),
  ],
  [
    'an owner of 22 bytes',
    raw(
      call(
        any(concatBytes(writeElement(1, hexToBytes(`41${OWNER}00`)), writeElement(2, contract), writeElement(4, data))),
      ),
    ),
  ],
  [
    'a contract’s address that only begins so',
    raw(
      call(
        any(concatBytes(writeElement(1, owner), writeElement(2, hexToBytes(`41${CONTRACT}00`)), writeElement(4, data))),
      ),
    ),
  ],
  ['no value in the parameter', raw(call(writeElement(1, utf8ToBytes(URL))))],
  ['a field number of ours in another wire type', raw(call(any(concatBytes(trigger, writeElement(5, data)))))],
  ['raw_data that has an integer in place of bytes', concatBytes(raw(call()).subarray(4), writeInt64(12, 1))],
  [
    'an owner of 20 bytes',
    raw(call(any(concatBytes(writeElement(1, hexToBytes(OWNER)), writeElement(2, contract), writeElement(4, data))))),
  ],
  [
    'the contract’s address with another prefix',
    raw(
      call(
        any(concatBytes(writeElement(1, owner), writeElement(2, hexToBytes(`a0${CONTRACT}`)), writeElement(4, data))),
      ),
    ),
  ],
])('a transaction with %s is never taken for a call', (_what, rawData) => {
  expect(readContract(rawData, contract)).toMatchObject({ call: null });
});

test.each<[string, Uint8Array]>([
  ['two contracts', raw(call(), call())],
  ['no contract', raw()],
  ['nothing', new Uint8Array(0)],
  ['a cut contract', raw(call()).subarray(0, 20)],
  ['a contract that is no message', raw(Uint8Array.of(255))],
])('a transaction with %s cannot be read', (_what, rawData) => {
  expect(readContract(rawData, contract)).toBeNull();
});

test('every field that the protocol declares may stand beside the call', () => {
  const bytes = (...numbers: number[]) => numbers.map((number) => writeElement(number, data));
  const integers = (...numbers: number[]) => numbers.map((number) => writeInt64(number, 1));
  const parties = [writeElement(1, owner), writeElement(2, contract)];
  const fullCall = concatBytes(...parties, ...integers(3), ...bytes(4), ...integers(5, 6));
  const fullContract = concatBytes(call(any(fullCall)), ...bytes(3, 4), ...integers(5));
  const rawData = concatBytes(
    ...[...bytes(1), ...integers(3), ...bytes(4), ...integers(8), ...bytes(9, 10)],
    writeElement(11, fullContract),
    ...[...bytes(12), ...integers(14, 18)],
  );
  expect(readContract(rawData, contract)).toEqual(accepted);
});

test.each([
  ['raw_data has an integer where a second contract would stand', concatBytes(raw(call()), writeInt64(11, 1))],
  ['the contract has bytes where its type would stand again', raw(concatBytes(call(), writeElement(1, data)))],
])('the type of a contract is known although %s', (_what, rawData) => {
  expect(readContract(rawData, contract)).toEqual({ type: 31, call: null });
});

test('the type of a contract is known although an unknown group stands beside it', () => {
  const withGroup = concatBytes(raw(call(any(), 1)), hexToBytes('a3010801a401'));
  expect(readContract(withGroup, contract)).toEqual({ type: 1, call: null });
});

test('arbitrary bytes are read or refused, never thrown at', () => {
  const bytes = raw(call());
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), fc.nat(bytes.length), (at, value, cut) => {
      const changed = Uint8Array.from(bytes);
      changed[at] = value;
      readContract(changed.subarray(0, cut), contract);
      const read = readContract(changed, contract);
      if (read?.call?.owner === OWNER && changed.join() !== bytes.join()) {
        // Only what the call does not depend on may have changed: ref_block_bytes, timestamp, calldata.
        const isData = read.call.calldata.join() !== data.join();
        const where = bytes.findIndex((byte, index) => byte !== changed[index]);
        expect(isData || where < 4 || where >= bytes.length - 2).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});
