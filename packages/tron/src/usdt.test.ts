import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AccountHex, parseAddress } from './address.ts';
import {
  decodeTransferCall,
  decodeTransferCallBytes,
  decodeTransferLog,
  encodeTransferCall,
  encodeTransferFromCall,
  TRANSFER_TOPIC,
  USDT_CONTRACTS,
} from './usdt.ts';

/** A log of a private java-tron network. */
const log = {
  address: 'd53adb8bb7b45de60d0dc3d03ba0c187093b919d',
  topics: [
    'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
    '0000000000000000000000007e5f4552091a69125d5dfcb7b8c2659029395bdf',
    '000000000000000000000000dcf2957055e8fcde477a077ecfeddf5ab2357547',
  ],
  data: '00000000000000000000000000000000000000000000000000000000000f4240',
};
const decoded = {
  contract: 'd53adb8bb7b45de60d0dc3d03ba0c187093b919d',
  from: '7e5f4552091a69125d5dfcb7b8c2659029395bdf',
  to: 'dcf2957055e8fcde477a077ecfeddf5ab2357547',
  value: 1_000_000n,
};
const account = fc
  .uint8Array({ minLength: 20, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString('hex') as AccountHex);
const uint256 = fc.bigInt(0n, 2n ** 256n - 1n);

test('the contracts are those that Tether published, and their accounts those of their addresses', () => {
  expect(USDT_CONTRACTS.mainnet.address).toBe('TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t');
  expect(USDT_CONTRACTS.nile.address).toBe('TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');
  for (const contract of Object.values(USDT_CONTRACTS)) {
    expect(parseAddress(contract.address)).toEqual({ kind: 'ok', ...contract });
  }
});

test('a real Transfer log is read', () => {
  expect(decodeTransferLog(log)).toEqual(decoded);
});

test('addresses in topics may carry the prefix 41, and the log address may too', () => {
  const topics = log.topics.map((topic, index) => (index === 0 ? topic : `${topic.slice(0, 22)}41${topic.slice(24)}`));
  expect(decodeTransferLog({ ...log, topics, address: `41${log.address}` })).toEqual(decoded);
});

test.each([
  [
    'another event',
    { topics: ['8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925', ...log.topics.slice(1)] },
  ],
  ['two topics', { topics: log.topics.slice(0, 2) }],
  ['four topics', { topics: [...log.topics, log.topics[1]] }],
  ['no topics', { topics: undefined }],
  ['a topic that is not text', { topics: [log.topics[0], 1, 2] }],
  ['a sender that is not text', { topics: [log.topics[0], 1, log.topics[2]] }],
  ['a receiver in a list', { topics: [log.topics[0], log.topics[1], [log.topics[2]]] }],
  ['a sender in a list', { topics: [log.topics[0], [log.topics[1]], log.topics[2]] }],
  ['a topic that is a number', { topics: [1, log.topics[1], log.topics[2]] }],
  ['a short sender', { topics: [log.topics[0], 'dcf2', log.topics[2]] }],
  ['an address in a list', { address: [log.address] }],
  ['no address', { address: undefined }],
  ['data in a list', { data: [log.data] }],
  ['a short topic', { topics: [log.topics[0], log.topics[1], 'dcf2'] }],
  ['no data', { data: undefined }],
  ['empty data', { data: '' }],
  ['31 bytes of data', { data: log.data.slice(2) }],
  ['64 bytes of data', { data: log.data + log.data }],
  ['data that is not hex', { data: `zz${log.data.slice(2)}` }],
  ['a short address', { address: log.address.slice(2) }],
  ['an address with another prefix', { address: `a0${log.address}` }],
])('a log with %s is not a transfer', (_name, change) => {
  expect(decodeTransferLog({ ...log, ...change })).toBeNull();
});

test('the topic is the hash of the event', () => {
  expect(TRANSFER_TOPIC).toBe(bytesToHex(keccak_256(utf8ToBytes('Transfer(address,address,uint256)'))));
});

test('calls read back from their calldata', () => {
  fc.assert(
    fc.property(account, account, uint256, (from, to, value) => {
      expect(decodeTransferCall(encodeTransferCall(to, value))).toEqual({ from: null, to, value });
      expect(decodeTransferCall(encodeTransferFromCall(from, to, value))).toEqual({ from, to, value });
      expect(decodeTransferCall(encodeTransferCall(to, value).slice(0, -1))).toBeNull();
      expect(decodeTransferCall(encodeTransferFromCall(from, to, value).slice(0, -2))).toBeNull();
    }),
  );
  expect(decodeTransferCall('')).toBeNull();
  expect(decodeTransferCall(`deadbeef${'0'.repeat(128)}`)).toBeNull();
});

test('a call whose address or amount is no hex, or that is cut in an address, is none', () => {
  const word = '0'.repeat(64);
  for (const selector of ['a9059cbb', '23b872dd']) {
    const sound = selector + word.repeat(3);
    expect(decodeTransferCall(sound)).not.toBeNull();
    const words = selector === 'a9059cbb' ? 2 : 3;
    for (let index = 0; index < words; index++) {
      const at = 8 + index * 64 + 40;
      expect(decodeTransferCall(`${sound.slice(0, at)}x${sound.slice(at + 1)}`)).toBeNull();
      expect(decodeTransferCall(sound.slice(0, at))).toBeNull();
    }
  }
});

test('amounts are those of a uint256, both ends included', () => {
  const to = decoded.to as AccountHex;
  for (const value of [0n, 2n ** 256n - 1n]) {
    expect(decodeTransferCall(encodeTransferCall(to, value))?.value).toBe(value);
  }
  for (const value of [-1n, 2n ** 256n]) {
    expect(() => encodeTransferCall(to, value)).toThrow(`${value} is not a uint256`);
  }
});

test('calldata reads the same from bytes, with anything after its arguments and above an address', () => {
  const tail = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString('hex'));
  fc.assert(
    fc.property(account, account, uint256, tail, fc.boolean(), (from, to, value, rest, hasFrom) => {
      const plain = hasFrom ? encodeTransferFromCall(from, to, value) : encodeTransferCall(to, value);
      const dirty = `${plain.slice(0, 8)}${'f'.repeat(24)}${plain.slice(32)}${rest}`;
      expect(decodeTransferCallBytes(Buffer.from(dirty, 'hex'))).toEqual(decodeTransferCall(plain));
      expect(decodeTransferCallBytes(Buffer.from(plain, 'hex').subarray(0, -1))).toBeNull();
    }),
  );
});
