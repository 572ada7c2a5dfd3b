import { concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { signMessage } from '@quittance/tron/signature';
import { type ContractRet, contractRetNumber } from '@quittance/tron/transaction';
import type { InfoBody } from '../evm/execute.ts';
import { type KeyPair, producerAccount } from '../evm/keys.ts';
import { type HiddenFields, wholeTransaction } from '../wire/hidden-fields.ts';

export interface BlockTransaction {
  readonly id: string;
  readonly rawDataHex: string;
  readonly signatures: readonly string[];
  /** DEFAULT means that there's no result, as in the genesis block. */
  readonly contractRet: ContractRet;
  readonly hidden?: HiddenFields;
  readonly info: InfoBody;
}

/** `turn` is the producer's index. The genesis block has no producer (-1) and no signature. */
export interface Block {
  readonly id: string;
  readonly header: BlockHeaderJson & {
    readonly number: number;
    readonly timestamp: number;
    readonly parentHash: string;
  };
  /**
   * Holds fields of the header's raw_data that java-tron doesn't know, as hex in wire format. These fields are written last, and JSON omits
   * them.
   */
  readonly hiddenHeader?: string;
  /** Whether the header's bytes contain no time, as in a genesis block. */
  readonly hidesTime?: boolean;
  readonly turn: number;
  readonly signature: string;
  readonly transactions: readonly BlockTransaction[];
}

/** The block version that java-tron 4.8 writes. */
const BLOCK_VERSION = 34;

/** Builds and signs the block after `parent`. */
export function sealBlock(
  parent: Block,
  {
    turn,
    signer,
    timestampMs,
    transactions,
    hiddenHeader = '',
  }: {
    turn: number;
    signer: KeyPair;
    timestampMs: number;
    transactions: readonly BlockTransaction[];
    hiddenHeader?: string;
  },
): Block {
  const header = headerOf({
    number: parent.header.number + 1,
    parentId: parent.id,
    turn,
    timestampMs,
    transactions,
  });
  const block = { header, turn, transactions, ...(hiddenHeader === '' ? {} : { hiddenHeader }) };
  const bytes = headerBytes(block);
  return { ...block, id: blockIdOf(bytes, header.number), signature: signMessage(bytes, signer.privateKey) };
}

/**
 * Returns a copy of the block with another parent and the Merkle root of its current transactions. The copy is signed with `key`. If `key`
 * is null, the copy keeps the old signature.
 */
export function resealBlock(block: Block, { parentId, key }: { parentId: string; key: Uint8Array | null }): Block {
  const root = txTrieRoot(block.transactions.map(transactionBytesOf));
  const header = { ...block.header, txTrieRoot: root, parentHash: parentId };
  const bytes = headerBytes({ ...block, header });
  const signature = key === null ? block.signature : signMessage(bytes, key);
  return { ...block, id: blockIdOf(bytes, header.number), header, signature };
}

/** A block's line in the log, from which the rest of the block is derived. */
export interface BlockRecord {
  readonly number: number;
  readonly timestampMs: number;
  readonly parentId: string;
  readonly turn: number;
  readonly signature: string;
  readonly hiddenHeader?: string;
  readonly transactions?: readonly BlockTransaction[];
}

export function recordOf({ header, hiddenHeader, turn, signature, transactions }: Block): BlockRecord {
  const record = {
    number: header.number,
    timestampMs: header.timestamp,
    parentId: header.parentHash,
    turn,
    signature,
    ...(hiddenHeader === undefined ? {} : { hiddenHeader }),
  };
  return transactions.length === 0 ? record : { ...record, transactions };
}

export function blockOfRecord(record: BlockRecord): Block {
  const { number, parentId, turn, timestampMs, signature, hiddenHeader, transactions = [] } = record;
  const header = headerOf({ number, parentId, turn, timestampMs, transactions });
  const block = { header, turn, signature, transactions, ...(hiddenHeader === undefined ? {} : { hiddenHeader }) };
  return { ...block, id: blockIdOf(headerBytes(block), number) };
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
    txTrieRoot: txTrieRoot(block.transactions.map(transactionBytesOf)),
    witness_address: `41${producerAccount(block.turn)}`,
    parentHash: block.parentId,
    version: BLOCK_VERSION,
    timestamp: block.timestampMs,
  };
}

/** Returns the whole Transaction in the form that its block commits to, including fields that JSON omits. */
export function transactionBytesOf({ contractRet, ...transaction }: BlockTransaction): Uint8Array {
  return wholeTransaction({
    ...transaction,
    contractRet: contractRet === 'DEFAULT' ? null : contractRetNumber(contractRet),
  });
}

/** Returns the header's raw_data, whose hash is the block id, including fields that JSON omits. */
export function headerBytes({
  header,
  hiddenHeader = '',
  hidesTime = false,
}: Pick<Block, 'header' | 'hiddenHeader' | 'hidesTime'>): Uint8Array {
  const bytes = encodeBlockHeader(hidesTime ? { ...header, timestamp: 0 } : header);
  if (bytes === null) throw new Error(`devnet built a header that cannot be encoded: ${JSON.stringify(header)}`);
  return concatBytes(bytes, hexToBytes(hiddenHeader));
}
