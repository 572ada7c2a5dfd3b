import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '../tron/block-header.ts';
import { txTrieRoot } from '../tron/merkle.ts';
import { signMessage } from '../tron/signature.ts';
import { type ContractRet, contractRetNumber, encodeTransaction } from '../tron/transaction.ts';
import type { InfoBody } from './execute.ts';
import { type KeyPair, producerAccount } from './keys.ts';

export interface BlockTransaction {
  readonly id: string;
  readonly rawDataHex: string;
  readonly signatures: readonly string[];
  readonly contractRet: ContractRet;
  readonly info: InfoBody;
}

/** A block. `turn` is the index of its producer; the genesis block has none (-1) and no signature. */
export interface Block {
  readonly id: string;
  readonly header: BlockHeaderJson & {
    readonly number: number;
    readonly timestamp: number;
    readonly parentHash: string;
  };
  readonly turn: number;
  readonly signature: string;
  readonly transactions: readonly BlockTransaction[];
}

/** The block version of java-tron 4.8. */
const BLOCK_VERSION = 34;

const NO_PRODUCER = -1;

const GENESIS_PARENT = bytesToHex(sha256(utf8ToBytes('quittance devnet genesis')));

/** What the genesis block of another network names as its parent. */
export const OTHER_GENESIS_PARENT = bytesToHex(sha256(utf8ToBytes('quittance devnet: another genesis')));

/** Block 0; its id, by which a client recognises the network, depends on its time only. */
export function genesisBlock(timestampMs: number): Block {
  const header = { number: 0, txTrieRoot: txTrieRoot([]), parentHash: GENESIS_PARENT, timestamp: timestampMs };
  return { id: blockIdOf(headerBytes(header), 0), header, turn: NO_PRODUCER, signature: '', transactions: [] };
}

/** Builds and signs the block after `parent`. */
export function sealBlock(
  parent: Block,
  {
    turn,
    signer,
    timestampMs,
    transactions,
  }: { turn: number; signer: KeyPair; timestampMs: number; transactions: readonly BlockTransaction[] },
): Block {
  const header = headerOf({
    number: parent.header.number + 1,
    parentId: parent.id,
    turn,
    timestampMs,
    transactions,
  });
  const bytes = headerBytes(header);
  const signature = signMessage(bytes, signer.privateKey);
  return { id: blockIdOf(bytes, header.number), header, turn, signature, transactions };
}

/** A block with another parent and the Merkle root of the transactions it has; signed with `key`, or with its old signature if null. */
export function resealBlock(block: Block, { parentId, key }: { parentId: string; key: Uint8Array | null }): Block {
  const root = txTrieRoot(block.transactions.map(leafOf));
  const header = { ...block.header, txTrieRoot: root, parentHash: parentId };
  const bytes = headerBytes(header);
  const signature = key === null ? block.signature : signMessage(bytes, key);
  return { ...block, id: blockIdOf(bytes, header.number), header, signature };
}

/** What a block's line in the log holds; the rest of the block follows from it. */
export interface BlockRecord {
  readonly number: number;
  readonly timestampMs: number;
  readonly parentId: string;
  readonly turn: number;
  readonly signature: string;
  readonly transactions?: readonly BlockTransaction[];
}

export function recordOf({ header, turn, signature, transactions }: Block): BlockRecord {
  const record = {
    number: header.number,
    timestampMs: header.timestamp,
    parentId: header.parentHash,
    turn,
    signature,
  };
  return transactions.length === 0 ? record : { ...record, transactions };
}

export function blockOfRecord(record: BlockRecord): Block {
  const { number, parentId, turn, timestampMs, signature, transactions = [] } = record;
  const header = headerOf({ number, parentId, turn, timestampMs, transactions });
  return { id: blockIdOf(headerBytes(header), number), header, turn, signature, transactions };
}

function headerOf(block: {
  number: number;
  parentId: string;
  turn: number;
  timestampMs: number;
  transactions: readonly BlockTransaction[];
}): Block['header'] {
  return {
    number: block.number,
    txTrieRoot: txTrieRoot(block.transactions.map(leafOf)),
    witness_address: `41${producerAccount(block.turn)}`,
    parentHash: block.parentId,
    version: BLOCK_VERSION,
    timestamp: block.timestampMs,
  };
}

function leafOf({ rawDataHex, signatures, contractRet }: BlockTransaction): Uint8Array {
  const results = [{ feeSun: 0n, ret: 0, contractRet: contractRetNumber(contractRet) ?? 0 }];
  return encodeTransaction({ rawData: hexToBytes(rawDataHex), signatures: signatures.map(hexToBytes), results });
}

function headerBytes(header: BlockHeaderJson): Uint8Array {
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error(`devnet built a header that cannot be encoded: ${JSON.stringify(header)}`);
  return bytes;
}
