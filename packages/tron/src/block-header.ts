import { concatBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from './address.ts';
import { bytesFromHex, hexOf } from './hex.ts';
import { writeBytes, writeInt64 } from './protobuf.ts';
import { visitFields } from './scan-message.ts';
import { type Sha256Hex, sha256Hex } from './sha256.ts';
import { recoverSigner } from './signature.ts';

/**
 * `block_header.raw_data` in the node's JSON. Byte fields are hex, `timestamp` is in milliseconds, and zero or empty fields are absent.
 * Example:
 * `{"number":66987565,"txTrieRoot":"faf8…52a2","witness_address":"41b2…94ba","parentHash":"0000…aeed","version":34,"timestamp":1777445121000}`.
 */
export interface BlockHeaderJson {
  readonly timestamp?: number;
  readonly txTrieRoot?: string;
  readonly parentHash?: string;
  readonly number?: number;
  readonly witness_id?: number;
  readonly witness_address?: string;
  readonly version?: number;
  readonly accountStateRoot?: string;
}

/**
 * Returns the protobuf bytes of a block header's raw_data (Tron.proto `BlockHeader.raw`), or null if a field has a value that no node
 * writes.
 */
export function encodeBlockHeader(header: BlockHeaderJson): Uint8Array | null {
  const timestamp = integer(header.timestamp);
  const number = integer(header.number);
  const witnessId = integer(header.witness_id);
  const version = integer(header.version);
  const txTrieRoot = bytesFromHex(header.txTrieRoot ?? '');
  const parentHash = bytesFromHex(header.parentHash ?? '');
  const witnessAddress = bytesFromHex(header.witness_address ?? '');
  const accountStateRoot = bytesFromHex(header.accountStateRoot ?? '');
  if (timestamp === null || number === null || witnessId === null || version === null) return null;
  if (txTrieRoot === null || parentHash === null || witnessAddress === null || accountStateRoot === null) return null;
  return concatBytes(
    writeInt64(1, timestamp),
    writeBytes(2, txTrieRoot),
    writeBytes(3, parentHash),
    writeInt64(7, number),
    writeInt64(8, witnessId),
    writeBytes(9, witnessAddress),
    writeInt64(10, version),
    writeBytes(11, accountStateRoot),
  );
}

/** The header's fields, decoded from its bytes. Absent fields are 0 or empty. */
export interface BlockHeaderFields {
  readonly timestamp: number;
  readonly number: number;
  readonly txTrieRoot: string;
  readonly parentHash: string;
  readonly witnessAddress: string;
}

/** Reads a header's raw_data, even if it has additional fields. Returns null for malformed bytes and for numbers beyond 2^53. */
export function decodeBlockHeader(bytes: Uint8Array): BlockHeaderFields | null {
  const numbers = new Map<number, number>();
  const hex = new Map<number, string>();
  const isRead = visitFields(bytes, 0, bytes.length, ({ number, wireType, start, end }) => {
    if (wireType === 0) numbers.set(number, varintAt(bytes, start, end));
    if (wireType === 2) hex.set(number, hexOf(bytes.subarray(start, end)));
    return true;
  });
  const [timestamp = 0, number = 0] = [numbers.get(1), numbers.get(7)];
  if (isRead === null || !Number.isSafeInteger(timestamp) || !Number.isSafeInteger(number)) return null;
  const [txTrieRoot = '', parentHash = '', witnessAddress = ''] = [hex.get(2), hex.get(3), hex.get(9)];
  return { timestamp, number, txTrieRoot, parentHash, witnessAddress };
}

/** The result is exact up to 2^53, which no height or time exceeds. */
function varintAt(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let index = end - 1; index >= start; index -= 1) value = value * 128 + ((bytes[index] ?? 0) & 0x7f);
  return value;
}

/** Returns the block id (64 hex characters): the height in 8 big-endian bytes, followed by bytes 8..31 of sha256(raw_data). */
export function blockIdOf(rawBytes: Uint8Array, number: number, hash: Sha256Hex = sha256Hex): string {
  return number.toString(16).padStart(16, '0') + hash(rawBytes).slice(16);
}

/**
 * Returns the account that signed a header, or null for an invalid signature. It's the producer's witness permission key, which may differ
 * from `witness_address`.
 */
export function recoverWitness(rawBytes: Uint8Array, signatureHex: string): AccountHex | null {
  return recoverSigner(rawBytes, signatureHex);
}

function integer(value: number | undefined): number | null {
  if (value === undefined) return 0;
  return Number.isSafeInteger(value) && value >= 0 ? value : null;
}
