import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { NETWORKS } from '../../domain/network.ts';
import { solidThreshold } from '../../domain/solidity.ts';
import { unixMs } from '../../domain/time.ts';
import { type Checkpoint, readCheckpoint, shippedCheckpoint, writeCheckpoint } from './checkpoints.ts';

const checkpoint: Checkpoint = {
  network: 'mainnet',
  number: 79_072_107,
  id: `0000000004b68b6b${'0f'.repeat(24)}`,
  time: unixMs(1_767_225_600_000),
  producers: [
    { account: '11'.repeat(20) as AccountHex, signer: '12'.repeat(20) as AccountHex },
    { account: '21'.repeat(20) as AccountHex, signer: '21'.repeat(20) as AccountHex },
  ],
};

test('a checkpoint that was written is read as it was', () => {
  expect(readCheckpoint(JSON.parse(JSON.stringify(writeCheckpoint(checkpoint))))).toEqual(checkpoint);
});

test('what this release ships is one of the whole network, and the devnet has none', () => {
  for (const network of NETWORKS) {
    const shipped = shippedCheckpoint(network);
    expect(shipped?.network ?? network).toBe(network);
    expect(solidThreshold(shipped?.producers.length ?? 27)).toBe(19);
  }
  expect(shippedCheckpoint('devnet')).toBeNull();
});

test.each([
  ['block 0', { number: 0 }],
  ['half a block', { number: 1.5 }],
  ['an id of another height', { number: 1 }],
  ['an id in capitals', { id: checkpoint.id.toUpperCase() }],
  ['a number as text', { number: '79072107' }],
  ['no time', { time: undefined }],
  ['a time before 1970', { time: '1900-01-01T00:00:00.000Z' }],
  ['28 producers', { producers: Array.from({ length: 28 }, () => writeCheckpoint(checkpoint).producers[0]) }],
  ['a producer that is none', { producers: [null] }],
  [
    'an address as nodes write it',
    { producers: [{ address: `41${'11'.repeat(20)}`, signer: `41${'11'.repeat(20)}` }] },
  ],
])('%s is no checkpoint', (_, change) => {
  expect(() => readCheckpoint({ ...writeCheckpoint(checkpoint), ...change })).toThrow('this is not a checkpoint');
});
