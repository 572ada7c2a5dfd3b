import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { describe, expect, test } from 'vitest';
import { NILE_HEADER } from '../../../test/support/build-block.ts';
import { mainNetworkBlock, type Oddity, realBlock } from '../../../test/support/real-blocks.ts';
import { blockIdOf, decodeBlockHeader } from './block-header.ts';
import { txTrieRoot } from './merkle.ts';
import { writeElement } from './protobuf.ts';
import {
  blockFromJson,
  blockFromMessage,
  headerFromJson,
  headerFromMessage,
  type ShownBlock,
  type ShownHeader,
} from './shown-block.ts';

const listed = (shown: ShownBlock | null) => shown && { ...shown, transactions: [...shown.transactions] };
type Listed = NonNullable<ReturnType<typeof listed>>;
const rootOf = ({ transactions }: Listed) => txTrieRoot(transactions.map(({ whole }) => whole));
const namedRootOf = ({ header }: ShownHeader) => decodeBlockHeader(header)?.txTrieRoot;
const idOf = ({ header }: ShownHeader) => blockIdOf(header, decodeBlockHeader(header)?.number ?? 0);

const inBytes = (oddity: Oddity) => listed(blockFromMessage(realBlock(oddity).bytes)) as Listed;
const inJson = (oddity: Oddity) => listed(blockFromJson(JSON.parse(realBlock(oddity).json))) as Listed;

describe('the bytes of a real block have its root and its id', () => {
  test.each<Oddity>([
    'outer-field',
    'result-1002',
    'order-id',
    'result-2^53',
    'header-raw',
    'long-signature',
    'payout',
    'fee-direct',
    'out-of-energy',
  ])('%s', (oddity) => {
    const shown = inBytes(oddity);
    expect(shown).toMatchObject({ isExact: true, shownId: null });
    expect(rootOf(shown)).toBe(namedRootOf(shown));
    expect(idOf(shown)).toBe(inJson(oddity).shownId);
  });

  test('block 79072107 of the main network, with 619 transactions', () => {
    const shown = listed(blockFromMessage(mainNetworkBlock())) as Listed;
    expect(shown.transactions).toHaveLength(619);
    expect(shown.transactions.every(({ isSuccess }) => isSuccess)).toBe(true);
    expect(rootOf(shown)).toBe('f557fe6879e64fc27d21c3a2a99e097636a8f7253a6a48392742b411e97d8e69');
    expect(namedRootOf(shown)).toBe(rootOf(shown));
    expect(idOf(shown)).toBe('0000000004b68b6be6d7223b1ecf2850f00f700292beeead2810c18e9e1548e2');
  });
});

describe('JSON of a real block', () => {
  test.each<Oddity>(['long-signature', 'payout', 'fee-direct', 'out-of-energy'])('gives the bytes of %s', (oddity) => {
    const exact = inBytes(oddity);
    const { shownId, ...encoded } = inJson(oddity);
    const transactions = encoded.transactions.map((each) => ({ ...each, shownId: null }));
    expect({ ...encoded, transactions, shownId: null, isExact: true }).toEqual(exact);
    expect(shownId).toBe(idOf(exact));
  });

  test.each<Oddity>(['outer-field', 'result-1002', 'order-id', 'result-2^53'])(
    'does not give those of %s',
    (oddity) => {
      const [exact, encoded] = [inBytes(oddity), inJson(oddity)];
      expect(rootOf(encoded)).not.toBe(namedRootOf(encoded));
      // The transaction itself, its id and how it ended, are not hidden.
      const partsOf = ({ transactions }: Listed) => transactions.map(({ rawData, isSuccess }) => [rawData, isSuccess]);
      expect(partsOf(encoded)).toEqual(partsOf(exact));
      expect(idOf(encoded)).toBe(encoded.shownId);
    },
  );

  test('does not give the header where a producer wrote more into it', () => {
    const encoded = inJson('header-raw');
    expect(idOf(encoded)).not.toBe(encoded.shownId);
    expect(decodeBlockHeader(encoded.header)).toEqual(decodeBlockHeader(inBytes('header-raw').header));
  });
});

test('a header in JSON and in a message is the same', () => {
  const fromJson = headerFromJson(NILE_HEADER) as ShownHeader;
  const message = writeElement(2, concatBytes(writeElement(1, fromJson.header), writeElement(2, fromJson.signature)));
  expect(headerFromMessage(message)).toEqual({ ...fromJson, isExact: true, shownId: null });
  expect(listed(blockFromMessage(message))).toEqual({ ...fromJson, isExact: true, shownId: null, transactions: [] });
  expect(blockFromJson(NILE_HEADER)).toEqual({ ...fromJson, transactions: [] });
});

const TRANSACTION = writeElement(1, writeElement(1, Uint8Array.of(10)));
const HEADER = writeElement(2, writeElement(1, Uint8Array.of(8, 1)));

test.each<[string, Uint8Array]>([
  ['nothing', new Uint8Array(0)],
  ['no header', TRANSACTION],
  ['a header without raw_data', writeElement(2, writeElement(2, Uint8Array.of(1)))],
  ['a header that is no message', writeElement(2, Uint8Array.of(10, 255))],
  ['a transaction without raw_data', Buffer.concat([HEADER, writeElement(1, Uint8Array.of(18, 0))])],
  ['bytes that are cut off', realBlock('payout').bytes.slice(0, -1)],
  ['more transactions than fit into a block', Buffer.concat([HEADER, ...Array(20_001).fill(TRANSACTION)])],
])('a message of %s is no block', (_what, message) => {
  expect(blockFromMessage(message)).toBeNull();
});

test.each<[string, object]>([
  ['more transactions than fit into a block', { transactions: Array(20_001).fill({ raw_data_hex: '0a', txID: '00' }) }],
  ['a transaction without an id', { transactions: [{ raw_data_hex: '0a' }] }],
  ['transactions that are no list', { transactions: 'x' }],
  ['no id', { blockID: undefined }],
  ['an id that is a number', { blockID: 7 }],
  ['a signature that is no hex', { block_header: { ...NILE_HEADER.block_header, witness_signature: '0' } }],
  ['a header without raw_data', { block_header: {} }],
])('JSON with %s is no block', (_what, change) => {
  expect(blockFromJson({ ...NILE_HEADER, ...change })).toBeNull();
});

test('whatever stands around the header is passed over, and a transaction keeps what is not known', () => {
  const whole = hexToBytes('0a010a2a0218013001');
  const message = concatBytes(writeElement(9, whole), writeElement(1, whole), HEADER);
  expect(listed(blockFromMessage(message))?.transactions).toEqual([
    expect.objectContaining({ whole, shownId: null, isSuccess: true }),
  ]);
});
