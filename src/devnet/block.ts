import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '../tron/block-header.ts';
import { txTrieRoot } from '../tron/merkle.ts';
import { signMessage } from '../tron/signature.ts';
import { type ContractRet, contractRetNumber, encodeTransaction } from '../tron/transaction.ts';
import type { InfoBody } from './execute.ts';
import type { Producer } from './keys.ts';

export interface BlockTransaction {
  readonly id: string;
  readonly rawDataHex: string;
  readonly signatures: readonly string[];
  readonly contractRet: ContractRet;
  readonly info: InfoBody;
}

/** A block. `turn` is the position of its producer; the genesis block has none (-1) and no signature. */
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
    producer,
    timestampMs,
    transactions,
  }: { turn: number; producer: Producer; timestampMs: number; transactions: readonly BlockTransaction[] },
): Block {
  const header = headerOf({
    number: parent.header.number + 1,
    parentId: parent.id,
    producer,
    timestampMs,
    transactions,
  });
  const bytes = headerBytes(header);
  const signature = signMessage(bytes, producer.signer.privateKey);
  return { id: blockIdOf(bytes, header.number), header, turn, signature, transactions };
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

export function blockOfRecord(record: BlockRecord, producers: readonly Producer[]): Block {
  const { number, parentId, turn, timestampMs, signature, transactions = [] } = record;
  const producer = producers[turn];
  if (producer === undefined) throw new Error(`devnet block ${number} names producer ${turn} of ${producers.length}`);
  const header = headerOf({ number, parentId, producer, timestampMs, transactions });
  return { id: blockIdOf(headerBytes(header), number), header, turn, signature, transactions };
}

function headerOf(block: {
  number: number;
  parentId: string;
  producer: Producer;
  timestampMs: number;
  transactions: readonly BlockTransaction[];
}): Block['header'] {
  return {
    number: block.number,
    txTrieRoot: txTrieRoot(block.transactions.map(leafOf)),
    witness_address: `41${block.producer.account}`,
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
