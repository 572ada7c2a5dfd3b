import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { writeElement } from '@quittance/tron/protobuf';
import { blockFromJson, headerFromJson, type ShownBlock, type ShownHeader } from '@quittance/tron/shown-block';
import { txIdOf } from '@quittance/tron/transaction';
import { encodeTransferCall, encodeTransferFromCall } from '@quittance/tron/usdt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type BlockAnswer,
  buildBlock,
  directTransfer,
  flipBit,
  leavesOf,
  NILE_HEADER,
  OTHER_CONTRACT,
  PRIVATE_ROOT,
  PRIVATE_TRANSACTION,
  PRODUCER,
  rawCall,
  rawTransfer,
  SLOT_MS,
  sealBlock,
  signBlock,
  USDT,
} from '../../../../test/support/build-block.ts';
import { blockAt } from '../nodes/questions.ts';
import { type ExaminedBlock, examineBlock, proveHeader, readBlockId } from './prove-block.ts';

// biome-ignore lint/suspicious/noExplicitAny: the answers are bent in every way.
type Bent = any;

const [ALICE, BOB] = ['a1'.repeat(20), 'b2'.repeat(20)] as [AccountHex, AccountHex];
const OPTIONS = { number: 156, slotMs: SLOT_MS, usdt: USDT };
type Expected = { number: number; slotMs: number | null; usdt: AccountHex };
const NILE = { number: 66987565, slotMs: SLOT_MS };
const refused = expect.objectContaining({ code: 'NODE_REFUSED', retryable: true });
const unverifiable = expect.objectContaining({ code: 'BLOCK_UNVERIFIABLE', retryable: true });

const move = { from: ALICE, to: BOB, value: 25_000_009n };
const realTransaction = {
  ...PRIVATE_TRANSACTION,
  txID: txIdOf(hexToBytes(PRIVATE_TRANSACTION.raw_data_hex)),
  raw_data: {},
};

/** A block with a transfer, one that failed, a call of another contract and a TRX transfer. */
const { block } = buildBlock([
  directTransfer(move),
  { ...directTransfer(move, 1), contractRet: 'REVERT' },
  { rawData: rawCall({ owner: ALICE, contract: OTHER_CONTRACT, data: 'ab' }) },
  { rawData: rawTransfer({ owner: ALICE, to: BOB }), isContract: false },
]);

/** What a node's JSON of a block proves. */
function examine(json: Bent, expected: Expected = OPTIONS): ExaminedBlock {
  return examineBlock(blockAt(expected.number).http.read(json) as ShownBlock, expected);
}

/** The same had the node shown those bytes themselves. */
function examineExact(json: Bent): ExaminedBlock {
  const shown = blockFromJson(json) as ShownBlock;
  const transactions = [...shown.transactions].map((each) => ({ ...each, shownId: null }));
  return examineBlock({ ...shown, isExact: true, shownId: null, transactions }, OPTIONS);
}

const headerOf = (json: Bent) => headerFromJson(json) as ShownHeader;
const unproven = (json: Bent) => {
  const { isProven, transactions } = examine(json);
  expect({ isProven, calls: transactions.filter(({ call }) => call !== null) }).toEqual({ isProven: false, calls: [] });
};

function bent(change: (block: Bent) => void): Bent {
  const copy = structuredClone(block);
  change(copy);
  return copy;
}

test('the header of a real block is proven, with its producer and its signer', () => {
  expect(proveHeader(headerOf(NILE_HEADER), NILE)).toEqual({
    number: 66987565,
    id: '0000000003fe262d52bfa4b2814f816fd2e57af5b98a33d60d8630a03a908e0e',
    parentId: '0000000003fe262c85cd6b02033f4c3e5c1efa35de256a17bd906dc61fb1aeed',
    time: 1777445121000,
    producer: 'b2f713d57dbcec679d93a8849fa0cd0e4db594ba',
    signer: 'b2f713d57dbcec679d93a8849fa0cd0e4db594ba',
    txTrieRoot: 'faf8fe3858339ead25cc892461c82a59b84dca4a51c45b026676bf3f45a352a2',
  });
});

test('every one-bit change of every field of a real header is refused, or shows another signer', () => {
  const paths = leavesOf(NILE_HEADER);
  expect(paths).toHaveLength(8);
  let refusals = 0;
  for (const { path } of paths) {
    for (let bit = 0; bit < 40; bit += 3) {
      const changed = flipBit(NILE_HEADER, path, bit);
      try {
        expect(proveHeader(headerOf(changed), NILE).signer).not.toBe('b2f713d57dbcec679d93a8849fa0cd0e4db594ba');
        expect(path).toContain('witness_signature');
      } catch (error) {
        expect([refused, unverifiable]).toContainEqual(error);
        refusals += 1;
      }
    }
  }
  expect(refusals).toBeGreaterThanOrEqual(7 * 14);
});

test('a block of the one real transaction has its real root and is proven', () => {
  const sealed = sealBlock([realTransaction]);
  expect(sealed.block_header.raw_data.txTrieRoot).toBe(PRIVATE_ROOT);
  expect(examine(sealed).transactions).toEqual([
    { txId: realTransaction.txID, isSuccess: true, isContract: false, call: null },
  ]);
});

test('every one-bit change of the raw_data of the real transaction is refused; with one of its signature, or another result, nothing is proven', () => {
  const sealed: Bent = sealBlock([realTransaction]);
  const at = ['transactions', '0'];
  for (let bit = 0; bit < 65 * 8; bit += 7) {
    for (const name of ['raw_data_hex', 'txID']) {
      expect(() => examine(flipBit(sealed, [...at, name], bit))).toThrow(unverifiable);
    }
    unproven(flipBit(sealed, [...at, 'signature', '0'], bit));
  }
  for (const ret of [undefined, [], [{}], [{ contractRet: 'REVERT' }], [{ contractRet: 'SUCCESS', fee: 1 }]]) {
    const changed = structuredClone(sealed);
    changed.transactions[0].ret = ret;
    unproven(changed);
    expect(() => examineExact(changed)).toThrow(unverifiable);
  }
});

test('a changed raw_data_hex with its own txID is not of the root', () => {
  const changed = bent((b) => {
    b.transactions[0].raw_data_hex = bytesToHex(directTransfer({ ...move, value: 1n }).rawData);
    b.transactions[0].txID = txIdOf(hexToBytes(b.transactions[0].raw_data_hex));
  });
  unproven(changed);
  expect(() => examineExact(changed)).toThrow(unverifiable);
});

test('only direct and successful transfers of the USDT contract are calls', () => {
  const { transactions, ...rest } = examine(block);
  expect(rest).toMatchObject({ number: 156, producer: PRODUCER, signer: PRODUCER, time: 1790865477000 });
  expect(transactions.map(({ isSuccess, isContract, call }) => ({ isSuccess, isContract, call }))).toEqual([
    { isSuccess: true, isContract: true, call: move },
    { isSuccess: false, isContract: true, call: null },
    { isSuccess: true, isContract: true, call: null },
    { isSuccess: true, isContract: false, call: null },
  ]);
});

const rawDataOf = (data: string, contract = USDT) => rawCall({ owner: ALICE, contract, data });
const plain = encodeTransferCall(BOB, 7n);

test.each<[string, Uint8Array, object | null]>([
  [
    'transferFrom, paid by another',
    rawDataOf(encodeTransferFromCall(OTHER_CONTRACT, BOB, 7n)),
    { from: OTHER_CONTRACT, to: BOB, value: 7n },
  ],
  ['a transfer to oneself', rawDataOf(encodeTransferCall(ALICE, 7n)), { from: ALICE, to: ALICE, value: 7n }],
  [
    'junk above the address, which USDT masks',
    rawDataOf(`${plain.slice(0, 8)}${'9'.repeat(24)}${plain.slice(32)}`),
    { from: ALICE, to: BOB, value: 7n },
  ],
  ['bytes behind the arguments', rawDataOf(`${plain}ffff`), { from: ALICE, to: BOB, value: 7n }],
  ['a value of 0', rawDataOf(encodeTransferCall(BOB, 0n)), { from: ALICE, to: BOB, value: 0n }],
  ['calldata one byte short', rawDataOf(plain.slice(0, -2)), null],
  ['another function', rawDataOf(`095ea7b3${plain.slice(8)}`), null],
  ['another contract', rawDataOf(plain, OTHER_CONTRACT), null],
  ['an unknown field beside the call', concatBytes(rawDataOf(plain), writeElement(200, Uint8Array.of(1))), null],
])('%s', (_what, rawData, call) => {
  expect(examine(buildBlock([{ rawData }]).block).transactions).toMatchObject([{ isContract: true, call }]);
});

test.each([
  ['bytes that are no message', Uint8Array.of(255, 255)],
  ['two contracts', concatBytes(rawDataOf(plain), rawDataOf(plain))],
])('a transaction of %s proves nothing and stops nothing', (_what, rawData) => {
  const proven = examine(buildBlock([{ rawData }, directTransfer(move)]).block);
  expect(proven.transactions).toMatchObject([{ isContract: null, call: null }, { call: move }]);
});

test('an empty block has no transactions field', () => {
  const { block: empty } = buildBlock([]);
  expect(empty).not.toHaveProperty('transactions');
  expect(examine(empty).transactions).toEqual([]);
});

test.each<[string, (block: Bent) => void]>([
  ['no transactions', (b) => delete b.transactions],
  ['the last transaction left out', (b) => b.transactions.pop()],
  ['transactions in another order', (b) => b.transactions.reverse()],
  ['a result turned to SUCCESS', (b) => (b.transactions[1].ret[0].contractRet = 'SUCCESS')],
  ['a result turned to REVERT', (b) => (b.transactions[0].ret[0].contractRet = 'REVERT')],
  ['an unknown result', (b) => (b.transactions[0].ret[0].contractRet = 'FINE')],
  ['two results', (b) => b.transactions[1].ret.unshift({ contractRet: 'SUCCESS' })],
  ['a signature left out', (b) => b.transactions[0].signature.pop()],
])('JSON of a block with %s proves nothing, and bytes that say so contradict themselves', (_what, change) => {
  unproven(bent(change));
  expect(() => examineExact(bent(change))).toThrow(unverifiable);
});

test.each<[string, (block: Bent) => void]>([
  ['another time', (b) => (b.block_header.raw_data.timestamp += SLOT_MS)],
  ['another witness_id', (b) => (b.block_header.raw_data.witness_id = 1)],
  ['an accountStateRoot', (b) => (b.block_header.raw_data.accountStateRoot = '00'.repeat(32))],
  ['another id', (b) => (b.blockID = `${b.blockID.slice(0, -1)}${b.blockID.endsWith('0') ? '1' : '0'}`)],
])('JSON of a block with %s proves nothing, and not who signed it', (_what, change) => {
  unproven(bent(change));
  expect(examine(bent(change)).signer).toBe(null);
  expect(() => proveHeader(headerOf(bent(change)), OPTIONS)).toThrow(unverifiable);
});

test.each<[string, (block: Bent) => void]>([
  ['a transaction twice', (b) => b.transactions.push(b.transactions[3])],
  ['another txID', (b) => (b.transactions[0].txID = 'ab'.repeat(32))],
  ['a txID in upper case', (b) => (b.transactions[0].txID = b.transactions[0].txID.toUpperCase())],
  ['an id of another height', (b) => (b.blockID = `${'0'.repeat(14)}9d${b.blockID.slice(16)}`)],
  ['no signature', (b) => delete b.block_header.witness_signature],
  ['a signature that no key can make', (b) => (b.block_header.witness_signature = '00'.repeat(65))],
  ['a signature of 64 bytes', (b) => (b.block_header.witness_signature = 'ab'.repeat(64))],
])('a block with %s is unverifiable', (_what, change) => {
  expect(() => examine(bent(change))).toThrow(unverifiable);
});

test.each<[string, Bent]>([
  ['null', null],
  ['a text', 'this API is closed because this node is a lite fullnode'],
  ['a refusal', { Error: 'class java.lang.Exception : lack of computing resources' }],
  ['no header', bent((b) => delete b.block_header)],
  ['a header that is a text', bent((b) => (b.block_header = 'x'))],
  ['no id', bent((b) => delete b.blockID)],
  ['a number that is a text', bent((b) => (b.block_header.raw_data.number = '156'))],
  ['a time that is a text', bent((b) => (b.block_header.raw_data.timestamp = 'now'))],
  ['a null field', bent((b) => (b.block_header.raw_data.version = null))],
  ['transactions that are no list', bent((b) => (b.transactions = {}))],
  ['a null transaction', bent((b) => (b.transactions[0] = null))],
  ['a transaction without id', bent((b) => delete b.transactions[0].txID)],
  ['a transaction without raw_data_hex', bent((b) => delete b.transactions[0].raw_data_hex)],
  ['a signature that is no hex', bent((b) => (b.transactions[0].signature[0] = 'zz'))],
  ['a signature of the header that is no hex', bent((b) => (b.block_header.witness_signature = 'zz'))],
])('an answer with %s is no block', (_what, answer) => {
  expect(() => blockAt(156).http.read(answer)).toThrow(TypeError);
});

test('an empty answer stands for an unknown block, and another block is refused', () => {
  expect(blockAt(156).http.read({})).toBe(null);
  expect(() => examine(buildBlock([], 157).block)).toThrow(refused);
});

test.each<[string, BlockAnswer, object]>([
  ['a parent of another height', sealBlock([], { parentHash: '00'.repeat(32) }), unverifiable],
  ['a time beside the slots', sealBlock([], { timestamp: 1790865477001 }), unverifiable],
  ['a witness address of another prefix', sealBlock([], { witness_address: `a0${PRODUCER}` }), refused],
  ['a root of 31 bytes', sealBlock([], { txTrieRoot: '00'.repeat(31) }), refused],
])('a header that is signed but has %s is refused', (_what, answer, error) => {
  expect(() => examine(answer)).toThrow(error);
});

test('without a slot any time is right', () => {
  const answer = sealBlock([], { timestamp: 1790865477001 });
  expect(examine(answer, { ...OPTIONS, slotMs: null }).time).toBe(1790865477001);
});

test('a node cannot hide transactions behind an inner node of the tree that looks like a transaction', () => {
  // 64 bytes, two hashes as far as the tree is concerned, that read as a Transaction with 62 bytes of raw_data.
  const disguise = { raw_data_hex: 'c3'.repeat(62), txID: txIdOf(new Uint8Array(62).fill(0xc3)), raw_data: {} };
  expect(() => examine(sealBlock([disguise]))).toThrow(unverifiable);
});

test('a transaction that stands twice in a block is refused even where the header commits to it', () => {
  const transactions = [realTransaction, realTransaction];
  expect(() => examine(sealBlock(transactions))).toThrow(unverifiable);
});

test('block 0 has an id though nobody signed it', () => {
  const header = { txTrieRoot: '00'.repeat(32), parentHash: 'e5'.repeat(32), timestamp: 0, number: 0 };
  const { witness_signature: _, ...block_header } = signBlock(header, []).block_header;
  const genesis = { blockID: signBlock(header, []).blockID, block_header };
  expect(readBlockId(headerOf(genesis))).toEqual({ number: 0, id: genesis.blockID, time: 0 });
  expect(() => readBlockId(headerOf({ ...genesis, blockID: 'ab'.repeat(32) }))).toThrow(unverifiable);
  expect(() => readBlockId(headerOf({ ...genesis, blockID: 'ab' }))).toThrow(unverifiable);
  expect(readBlockId(headerOf(NILE_HEADER))).toEqual({
    number: 66987565,
    id: NILE_HEADER.blockID,
    time: 1777445121000,
  });
  const other = { ...NILE_HEADER, blockID: `${NILE_HEADER.blockID.slice(0, -1)}f` };
  expect(() => readBlockId(headerOf(other))).toThrow(unverifiable);
  expect(headerFromJson({})).toBe(null);
});

test('one changed bit anywhere is refused, shows another signer, leaves nothing proven, or changes nothing that is', () => {
  const account = fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => bytesToHex(bytes) as AccountHex);
  const planned = fc.oneof(
    fc
      .record({ from: account, to: account, value: fc.bigInt(0n, 2n ** 80n) })
      .map((each) => ({ ...directTransfer(each), call: each })),
    fc.record({ owner: account, to: account }).map((each) => ({ rawData: rawTransfer(each), call: null })),
    fc
      .record({ from: account, to: account, value: fc.constant(5n) })
      .map((each) => ({ ...directTransfer(each), contractRet: 'OUT_OF_ENERGY', call: null })),
  );
  const plan = fc.uniqueArray(planned, { maxLength: 6, selector: ({ rawData }) => bytesToHex(rawData) });
  fc.assert(
    fc.property(plan, fc.nat(), fc.nat(), (transactions, which, bit) => {
      const { block: given } = buildBlock(transactions);
      const proven = examine(given);
      expect(proven.transactions.map(({ call }) => call)).toEqual(transactions.map(({ call }) => call));
      const paths = leavesOf(given);
      const path = paths[which % paths.length]?.path ?? [];
      try {
        const changed = examine(flipBit(given, path, bit));
        if (!changed.isProven) expect(changed.transactions.filter(({ call }) => call !== null)).toEqual([]);
        else if (changed.signer === proven.signer) expect(changed).toEqual(proven);
        else expect(path).toContain('witness_signature');
      } catch (error) {
        // What is no block is told by its reader; the pool hears of it as of any refusal.
        if (!(error instanceof TypeError)) expect([refused, unverifiable]).toContainEqual(error);
      }
    }),
    { numRuns: 300 },
  );
});
