import { hash } from 'node:crypto';
import { AppError } from '../domain/errors.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { type AccountHex, accountFromHex41 } from '../tron/address.ts';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '../tron/block-header.ts';
import { bytesFromHex } from '../tron/hex.ts';
import { txTrieRoot } from '../tron/merkle.ts';
import { CREATE_CONTRACT_TYPE, readContract, TRIGGER_CONTRACT_TYPE } from '../tron/read-contract.ts';
import type { Sha256Hex } from '../tron/sha256.ts';
import { type TransactionBytes, transactionBytes } from '../tron/transaction-bytes.ts';
import { decodeTransferCallBytes } from '../tron/usdt.ts';
import { recoverProducer } from './recover-producer.ts';

export type ProvenHeader = {
  number: number;
  id: string;
  parentId: string;
  time: UnixMs;
  producer: AccountHex;
  /** Whose key signed: the producer's witness permission key, if the header is genuine. */
  signer: AccountHex;
  txTrieRoot: string;
};

export type ProvenTransaction = {
  txId: string;
  /** `ret[0].contractRet` is SUCCESS. */
  isSuccess: boolean;
  /** A contract call or creation (types 31 and 30), or bytes that cannot be read: only these may have logs. */
  isContract: boolean;
  /** A direct, successful `transfer` or `transferFrom` call of USDT. */
  call: { from: AccountHex; to: AccountHex; value: bigint } | null;
};

export type ProvenBlock = ProvenHeader & { transactions: ProvenTransaction[] };

const HASH = /^[0-9a-f]{64}$/;
/** The height of block 0, with which its id begins. */
const GENESIS_PREFIX = '0'.repeat(16);
const NO_ROOT = '00'.repeat(32);

/** A block holds 2 MB (java-tron `BLOCK_SIZE`), and the smallest transactions take a hundred bytes. */
const MAX_TRANSACTIONS = 20_000;

/** The size of an inner node of the transactions' tree: a transaction of this size could stand for many. */
const NODE_BYTES = 64;

const sha256: Sha256Hex = (bytes) => hash('sha256', bytes, 'hex');

/**
 * Proves a `getblock` answer with `detail: true` from its own bytes: the id and the signature belong to the header, the
 * header commits to every transaction with its signatures and its result, and there is no other. Whether the signer is the
 * producer's key is for the caller to check. `slotMs`: block times are multiples of it, null where it is not known.
 * Errors: `NODE_REFUSED` (not the shape, or `{}`), `BLOCK_UNVERIFIABLE` (it contradicts its own hashes); both retryable.
 */
export function proveBlock(
  answer: unknown,
  { number, slotMs, usdt }: { number: number; slotMs: number | null; usdt: AccountHex },
): ProvenBlock {
  const header = proveHeader(answer, { number, slotMs });
  const { transactions: list = [] } = answer as { transactions?: unknown };
  if (!Array.isArray(list)) throw refused(`the transactions of block ${number} are no list`);
  if (list.length > MAX_TRANSACTIONS) throw refused(`${list.length} transactions in block ${number}`);
  const contract = bytesFromHex(`41${usdt}`) ?? new Uint8Array(0);
  const leaves: Uint8Array[] = [];
  const transactions: ProvenTransaction[] = [];
  const seen = new Set<string>();
  for (const json of list as unknown[]) {
    const bytes = transactionBytes(json);
    const { txID } = (json ?? {}) as { txID?: unknown };
    if (bytes === null || typeof txID !== 'string') throw refused(`transaction ${leaves.length} of block ${number}`);
    if (sha256(bytes.rawData) !== txID) throw contradicts(`txID ${txID} in block ${number} is not of its raw_data_hex`);
    if (bytes.whole.length === NODE_BYTES) throw contradicts(`transaction ${txID} in block ${number} has 64 bytes`);
    if (seen.has(txID)) throw contradicts(`transaction ${txID} stands twice in block ${number}`);
    seen.add(txID);
    leaves.push(bytes.whole);
    transactions.push(describeTransaction(txID, bytes, contract));
  }
  const root = txTrieRoot(leaves, sha256);
  if (root !== header.txTrieRoot) {
    throw contradicts(
      `the ${leaves.length} transactions of block ${number} have root ${root}, not ${header.txTrieRoot}`,
    );
  }
  return { ...header, transactions };
}

/** Proves a `getblock` answer with `detail: false`, as `proveBlock` does. Nothing is said about its transactions. */
export function proveHeader(
  answer: unknown,
  { number, slotMs }: { number: number; slotMs: number | null },
): ProvenHeader {
  const { raw, bytes, signature, ...header } = readHeader(answer);
  if (header.number !== number) throw refused(`block ${header.number} where ${number} was asked for`);
  const { parentHash, witness_address, txTrieRoot: root = NO_ROOT } = raw;
  if (typeof parentHash !== 'string' || !HASH.test(parentHash)) throw refused(`parentHash ${parentHash}`);
  if (typeof root !== 'string' || !HASH.test(root)) throw refused(`txTrieRoot ${root} of block ${number}`);
  const producer = typeof witness_address === 'string' ? accountFromHex41(witness_address) : null;
  if (producer === null) throw refused(`witness_address ${witness_address} of block ${number}`);
  if (typeof signature !== 'string') throw refused(`witness_signature ${signature} of block ${number}`);
  if (Number.parseInt(parentHash.slice(0, 16), 16) !== number - 1) {
    throw contradicts(`parent ${parentHash} of block ${number} has another height`);
  }
  if (slotMs !== null && header.time % slotMs !== 0) {
    throw contradicts(`the time ${header.time} of block ${number} is no multiple of ${slotMs} ms`);
  }
  const signer = recoverProducer(producer, bytes, signature);
  if (signer === null) throw contradicts(`no key can have made the signature ${signature} of block ${number}`);
  return { ...header, parentId: parentHash, producer, signer, txTrieRoot: root };
}

/**
 * Number, id and time of any block, whose signature is not looked at. The id is recomputed from the header, except for
 * block 0: nobody signs it, and its id is compared with a known one anyway.
 * Errors as of `proveBlock`.
 */
export function readBlockId(answer: unknown): { number: number; id: string; time: UnixMs } {
  const { blockID, block_header } = (answer ?? {}) as { blockID?: unknown; block_header?: { raw_data?: HeaderFields } };
  const { number: shown = 0, timestamp = 0 } = block_header?.raw_data ?? { number: null };
  if (shown === 0 && typeof blockID === 'string' && HASH.test(blockID) && blockID.startsWith(GENESIS_PREFIX)) {
    return {
      number: 0,
      id: blockID,
      time: unixMs(Number.isSafeInteger(timestamp) ? Math.max(0, Number(timestamp)) : 0),
    };
  }
  const { number, id, time } = readHeader(answer);
  return { number, id, time };
}

/** The fields as they came, of unknown type but for the bytes that could be made of them. */
type HeaderFields = { [Field in keyof BlockHeaderJson]?: unknown };

function readHeader(answer: unknown) {
  const { blockID: id, block_header } = (answer ?? {}) as { blockID?: unknown; block_header?: unknown };
  const { raw_data, witness_signature: signature } = (block_header ?? {}) as {
    raw_data?: unknown;
    witness_signature?: unknown;
  };
  if (typeof raw_data !== 'object' || raw_data === null) throw refused(`header of ${id}`);
  const raw: HeaderFields = raw_data;
  // Zero fields are left out: block 0 has no number, and the genesis block of the main network no timestamp.
  const { number = 0, timestamp = 0 } = raw;
  const bytes = encodeBlockHeader(raw as BlockHeaderJson);
  if (typeof id !== 'string' || !HASH.test(id)) throw refused(`blockID ${id}`);
  if (bytes === null || typeof number !== 'number' || typeof timestamp !== 'number') throw refused(`header of ${id}`);
  const computed = blockIdOf(bytes, number, sha256);
  if (computed !== id) throw contradicts(`the header of block ${number} has id ${computed}, not ${id}`);
  return { number, id, time: unixMs(timestamp), raw, bytes, signature };
}

/** What the bytes of a transaction say. `usdt`: the contract's address of 21 bytes. */
export function describeTransaction(
  txId: string,
  { rawData, isSuccess }: TransactionBytes,
  usdt: Uint8Array,
): ProvenTransaction {
  const contract = readContract(rawData, usdt);
  const type = contract?.type ?? TRIGGER_CONTRACT_TYPE;
  const isContract = type === TRIGGER_CONTRACT_TYPE || type === CREATE_CONTRACT_TYPE;
  const call = isSuccess ? (contract?.call ?? null) : null;
  const transfer = call === null ? null : decodeTransferCallBytes(call.calldata);
  if (call === null || transfer === null) return { txId, isSuccess, isContract, call: null };
  const { from, to, value } = transfer;
  return { txId, isSuccess, isContract, call: { from: from ?? call.owner, to, value } };
}

function refused(seen: string): AppError {
  return new AppError('NODE_REFUSED', `the node's answer is not a block: ${seen}`, { retryable: true });
}

function contradicts(seen: string): AppError {
  return new AppError('BLOCK_UNVERIFIABLE', `the block contradicts itself: ${seen}`, { retryable: true });
}
