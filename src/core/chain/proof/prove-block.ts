import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import { type AccountHex, accountFromHex41 } from '@quittance/tron/address';
import { type BlockHeaderFields, blockIdOf, decodeBlockHeader } from '@quittance/tron/block-header';
import { bytesFromHex, hexOf } from '@quittance/tron/hex';
import { rootOfLeaves } from '@quittance/tron/merkle';
import { CREATE_CONTRACT_TYPE, readContract, TRIGGER_CONTRACT_TYPE } from '@quittance/tron/read-contract';
import type { Sha256Hex } from '@quittance/tron/sha256';
import type { ShownBlock, ShownHeader } from '@quittance/tron/shown-block';
import { recoverKey } from '@quittance/tron/signature';
import type { TransactionBytes } from '@quittance/tron/transaction-bytes';
import { decodeTransferCallBytes } from '@quittance/tron/usdt';
import { type AppError, retryableError } from '../../domain/errors.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';

export type ProvenHeader = {
  number: number;
  id: string;
  parentId: string;
  time: UnixMs;
  producer: AccountHex;
  /**
   * The key that signed the block, which is the producer's witness permission key if the header is genuine. `null` if the signed bytes are
   * unavailable.
   */
  signer: AccountHex | null;
  txTrieRoot: string;
};

export type ShownTransactionFacts = {
  txId: string;
  /** Whether `ret[0].contractRet` is SUCCESS. */
  isSuccess: boolean;
  /**
   * Whether this is a contract call or creation (types 31 and 30), because only these can have logs. `null` if its bytes are unreadable.
   */
  isContract: boolean | null;
  /** Set for a direct, successful `transfer` or `transferFrom` call to USDT in a proven block, otherwise `null`. */
  call: { from: AccountHex; to: AccountHex; value: bigint } | null;
};

/**
 * `isProven`: whether the header commits to the transactions. If not, they are only a node's claim, because the node's JSON omits some of
 * the bytes.
 */
export type ExaminedBlock = ProvenHeader & { isProven: boolean; transactions: ShownTransactionFacts[] };

const HASH = /^[0-9a-f]{64}$/;
/** The height of block 0, which its id starts with. */
const GENESIS_PREFIX = '0'.repeat(16);
const NO_ROOT = '00'.repeat(32);

/** The size of an inner node in the transactions' Merkle tree. A transaction of exactly this size could pass for a whole subtree. */
const NODE_BYTES = 64;

const sha256: Sha256Hex = (bytes) => hash('sha256', bytes, 'hex');

type Expected = { number: number; slotMs: number | null };

/**
 * Proves a block from its bytes: its id and signature belong to the header, and the header commits to exactly these transactions with their
 * signatures and results. The caller must check whether the signer is the producer's key. `slotMs`: block times are multiples of this;
 * `null` if unknown. If the node's JSON omits some of the bytes, the block remains unproven. Errors, both retryable: `NODE_REFUSED` (the
 * node returned a different block), `BLOCK_UNVERIFIABLE` (the block contradicts its own hashes).
 */
export function examineBlock(shown: ShownBlock, expected: Expected & { usdt: AccountHex }): ExaminedBlock {
  const { number, usdt } = expected;
  const { hasBytes, ...header } = readHeader(shown, expected);
  const contract = bytesFromHex(`41${usdt}`) ?? new Uint8Array(0);
  const transactions: ShownTransactionFacts[] = [];
  const seen = new Set<string>();
  const leaves: string[] = [];
  for (const transaction of shown.transactions) {
    const txId = sha256(transaction.rawData);
    const { shownId, whole } = transaction;
    if (shownId !== null && shownId !== txId)
      throw contradicts(`txID ${shownId} in block ${number} does not match its raw_data_hex`);
    if (whole.length === NODE_BYTES)
      throw contradicts(
        `transaction ${txId} in block ${number} has ${NODE_BYTES} bytes, like an inner node of the Merkle tree`,
      );
    if (seen.has(txId)) throw contradicts(`transaction ${txId} appears twice in block ${number}`);
    seen.add(txId);
    leaves.push(sha256(whole));
    transactions.push(describeTransaction(txId, transaction, contract));
  }
  const root = rootOfLeaves(leaves, sha256);
  const isProven = hasBytes && root === header.txTrieRoot;
  if (!isProven && shown.isExact) {
    throw contradicts(
      `the ${leaves.length} transactions in block ${number} have root ${root}, not ${header.txTrieRoot}`,
    );
  }
  return {
    ...header,
    isProven,
    transactions: isProven ? transactions : transactions.map((each) => ({ ...each, call: null })),
  };
}

/** Proves a header, like `examineBlock`, but proves nothing about its transactions. */
export function proveHeader(shown: ShownHeader, expected: Expected): ProvenHeader {
  const { hasBytes, ...header } = readHeader(shown, expected);
  if (hasBytes) return header;
  throw contradicts(`the header of block ${expected.number} does not have the id ${header.id}`);
}

/**
 * Returns the number, id and time of any block, without checking its signature. The id is recomputed from the header, except for block 0 in
 * JSON, which has no signature, and whose id is compared with a known one anyway. Errors: as for `proveHeader`.
 */
export function readBlockId(shown: ShownHeader): { number: number; id: string; time: UnixMs } {
  const { number, timestamp } = decoded(shown);
  const { shownId } = shown;
  const computed = blockIdOf(shown.header, number, sha256);
  const isGenesis = number === 0 && shownId !== null && HASH.test(shownId) && shownId.startsWith(GENESIS_PREFIX);
  if (!isGenesis && shownId !== null && shownId !== computed) {
    throw contradicts(`the header of block ${number} has id ${computed}, not ${shownId}`);
  }
  return { number, id: isGenesis ? shownId : computed, time: unixMs(Math.max(0, timestamp)) };
}

/** Whether the header's bytes hash to its id. Always true for a header that was received as bytes. */
export function isReproduced({ header, shownId }: ShownHeader): boolean {
  if (shownId === null) return true;
  const number = decodeBlockHeader(header)?.number;
  return number !== undefined && blockIdOf(header, number, sha256) === shownId;
}

function readHeader(shown: ShownHeader, { number, slotMs }: Expected): ProvenHeader & { hasBytes: boolean } {
  const { timestamp, ...raw } = decoded(shown);
  if (raw.number !== number) throw refused(`block ${raw.number} instead of block ${number}`);
  const { parentHash, witnessAddress } = raw;
  if (!HASH.test(parentHash)) throw refused(`parentHash ${parentHash}`);
  const txTrieRoot = raw.txTrieRoot === '' ? NO_ROOT : raw.txTrieRoot;
  if (!HASH.test(txTrieRoot)) throw refused(`txTrieRoot ${txTrieRoot} of block ${number}`);
  const producer = accountFromHex41(witnessAddress);
  if (producer === null) throw refused(`witness_address ${witnessAddress} of block ${number}`);
  if (Number.parseInt(parentHash.slice(0, 16), 16) !== number - 1) {
    throw contradicts(`parent ${parentHash} of block ${number} has the wrong height`);
  }
  if (slotMs !== null && timestamp % slotMs !== 0) {
    throw contradicts(`the time ${timestamp} of block ${number} is not a multiple of ${slotMs} ms`);
  }
  const computed = blockIdOf(shown.header, number, sha256);
  const id = shown.shownId ?? computed;
  if (!HASH.test(id)) throw refused(`blockID ${id}`);
  if (Number.parseInt(id.slice(0, 16), 16) !== number)
    throw contradicts(`id ${id} of block ${number} has the wrong height`);
  const hasBytes = id === computed;
  const signer = hasBytes ? recoverProducer(producer, shown.header, hexOf(shown.signature)) : null;
  if (hasBytes && signer === null) throw contradicts(`no key could have created the signature on block ${number}`);
  return { number, id, parentId: parentHash, time: unixMs(timestamp), producer, signer, txTrieRoot, hasBytes };
}

function decoded(shown: ShownHeader): BlockHeaderFields {
  const fields = decodeBlockHeader(shown.header);
  if (fields === null) throw refused('its header cannot be read');
  return fields;
}

/** Reads a transaction's facts from its bytes. `usdt` is the contract's address (21 bytes). */
export function describeTransaction(
  txId: string,
  { rawData, isSuccess }: Pick<TransactionBytes, 'rawData' | 'isSuccess'>,
  usdt: Uint8Array,
): ShownTransactionFacts {
  const contract = readContract(rawData, usdt);
  const type = contract?.type;
  const isContract = type === undefined ? null : type === TRIGGER_CONTRACT_TYPE || type === CREATE_CONTRACT_TYPE;
  const call = isSuccess ? (contract?.call ?? null) : null;
  const transfer = call === null ? null : decodeTransferCallBytes(call.calldata);
  if (call === null || transfer === null) return { txId, isSuccess, isContract, call: null };
  const { from, to, value } = transfer;
  return { txId, isSuccess, isContract, call: { from: from ?? call.owner, to, value } };
}

function refused(seen: string): AppError {
  return retryableError('NODE_REFUSED', `the node's response is not a block: ${seen}`);
}

function contradicts(seen: string): AppError {
  return retryableError('BLOCK_UNVERIFIABLE', `the block contradicts itself: ${seen}`);
}

/** A network's producers have fewer keys than this, so all keys in use stay cached. */
const MAX_KEYS = 128;
/** DER of a SubjectPublicKeyInfo with an uncompressed secp256k1 point (RFC 5480), without the point itself. */
const SPKI_PREFIX = Buffer.from('3056301006072a8648ce3d020106052b8104000a034200', 'hex');

/** Keys that were recovered from signatures, by the producer of the signed blocks. The oldest one comes first. */
const keys = new Map<string, { signer: AccountHex; key: KeyObject }>();

/**
 * Returns the account that signed a header, or `null` if the signature is invalid. Recovering a key from a signature takes 1.4 ms, but
 * verifying one with a known key needs only a quarter of that (OpenSSL), so Quittance first tries the key from the producer's earlier
 * blocks.
 */
export function recoverProducer(producer: AccountHex, header: Uint8Array, signatureHex: string): AccountHex | null {
  const known = keys.get(producer);
  // The last byte only selects one of the possible keys, so it isn't needed here.
  const signature = Buffer.from(signatureHex, 'hex').subarray(0, 64);
  if (known !== undefined && signatureHex.length >= 130 && signature.length === 64) {
    const key = { key: known.key, dsaEncoding: 'ieee-p1363' } as const;
    if (verify('sha256', header, key, signature)) return known.signer;
  }
  const recovered = recoverKey(header, signatureHex);
  if (recovered === null) return null;
  keepNewest(keys, producer, { signer: recovered.account, key: toKey(recovered.publicKey) }, MAX_KEYS);
  return recovered.account;
}

function toKey(point: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, point]), format: 'der', type: 'spki' });
}
