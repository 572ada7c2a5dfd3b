import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader, recoverWitness } from './block-header.ts';

/** Block 66987565 of the Nile network. */
const header: BlockHeaderJson = {
  number: 66987565,
  txTrieRoot: 'faf8fe3858339ead25cc892461c82a59b84dca4a51c45b026676bf3f45a352a2',
  witness_address: '41b2f713d57dbcec679d93a8849fa0cd0e4db594ba',
  parentHash: '0000000003fe262c85cd6b02033f4c3e5c1efa35de256a17bd906dc61fb1aeed',
  version: 34,
  timestamp: 1777445121000,
};
const blockId = '0000000003fe262d52bfa4b2814f816fd2e57af5b98a33d60d8630a03a908e0e';
const signature =
  '5b3cf6cb15d52947989f7726f4907a144b39ccd667a1a0f98707b40cdfe65b96173ddf34ae8dcc5e78f136e0cf903a15c7128984aa2191f02333209d1879d3f900';
const witness = 'b2f713d57dbcec679d93a8849fa0cd0e4db594ba';

function bytesOf(json: BlockHeaderJson): Uint8Array {
  const bytes = encodeBlockHeader(json);
  if (bytes === null) throw new Error('the header was refused');
  return bytes;
}

test('the header of a real block gives its block id', () => {
  expect(blockIdOf(bytesOf(header), 66987565)).toBe(blockId);
});

test('the signature of a real block gives its producer, with v as 0/1 and as 27/28', () => {
  expect(recoverWitness(bytesOf(header), signature)).toBe(witness);
  expect(recoverWitness(bytesOf(header), `${signature.slice(0, -2)}1b`)).toBe(witness);
  expect(recoverWitness(bytesOf(header), `${signature.slice(0, -2)}1c`)).not.toBe(witness);
});

test.each([
  '',
  '00',
  signature.slice(2),
  `${signature.slice(0, -2)}02`,
  `${'00'.repeat(64)}00`,
  `zz${signature.slice(2)}`,
])('the signature %j has no signer', (text) => {
  expect(recoverWitness(bytesOf(header), text)).toBeNull();
});

test('a header with one bit changed has another id and another signer', () => {
  const bytes = bytesOf(header);
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (bit) => {
      const changed = Uint8Array.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(blockIdOf(changed, 66987565)).not.toBe(blockId);
      expect(recoverWitness(changed, signature)).not.toBe(witness);
    }),
    { numRuns: 50 },
  );
});

test('a zero field and an absent field are the same bytes', () => {
  expect(bytesOf({ ...header, witness_id: 0, accountStateRoot: '' })).toEqual(bytesOf(header));
});

test('a header of nothing has no bytes', () => {
  expect(encodeBlockHeader({})).toEqual(new Uint8Array(0));
});

test('witness_id and accountStateRoot are part of the id', () => {
  const plain = blockIdOf(bytesOf(header), 66987565);
  expect(blockIdOf(bytesOf({ ...header, witness_id: 5 }), 66987565)).not.toBe(plain);
  expect(blockIdOf(bytesOf({ ...header, accountStateRoot: '00'.repeat(32) }), 66987565)).not.toBe(plain);
});

test.each([
  { parentHash: 'xyz' },
  { number: -1 },
  { number: 1.5 },
  { timestamp: 2 ** 53 },
  { witness_id: -1 },
  { version: 0.5 },
  { txTrieRoot: '0' },
  { witness_address: '4' },
  { accountStateRoot: 'zz' },
])('a header with %j is refused', (fault) => {
  expect(encodeBlockHeader({ ...header, ...fault })).toBeNull();
});
