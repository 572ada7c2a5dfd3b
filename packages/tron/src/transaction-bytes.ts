import { writeHex } from './hex.ts';
import { type ScannedField, visitFields } from './scan-message.ts';
import { contractRetNumber, SUCCESS } from './transaction.ts';

/** A whole Transaction, in the form that its block commits to. `rawData` is the part of `whole` whose sha256 is the transaction id. */
export type TransactionBytes = {
  readonly whole: Uint8Array;
  readonly rawData: Uint8Array;
  /** The number of the first result's `contractRet`, or -1 if its name is unknown. */
  readonly contractRet: number;
  readonly isSuccess: boolean;
};

/** The integers in Tron.proto `Transaction.Result` other than `ret` and `contractRet`. The transaction's sender may have set them. */
const RESULT_INTEGERS: readonly (readonly [name: string, number: number])[] = [
  ['withdraw_amount', 15],
  ['unfreeze_amount', 16],
  ['exchange_received_amount', 18],
  ['exchange_inject_another_amount', 19],
  ['exchange_withdraw_another_amount', 20],
  ['exchange_id', 21],
  ['shielded_transaction_fee', 22],
  ['withdraw_expire_amount', 27],
];

/** `Transaction.Result.code`. Nodes write the misspelt name. */
const RESULT_CODES = ['SUCESS', 'FAILED'];

/** Normally a transaction has one result and at most five signatures, but its sender may have added more. */
const MAX_RESULTS = 1000;
const MAX_SIGNATURES = 1000;

/** A tag takes one byte, and a length takes at most five. */
const MAX_HEAD_BYTES = 6;

/**
 * Returns the bytes of a Transaction as java-tron serialises them: known fields first, followed by unknown ones. Returns null for bytes
 * that java-tron never writes: malformed bytes, or bytes with no raw_data or two of them.
 */
export function splitTransaction(whole: Uint8Array): TransactionBytes | null {
  const place = scanTransaction(whole, 0, whole.length);
  return place === null ? null : transactionAt(whole, place);
}

/** The positions of a Transaction and of its raw_data within the surrounding bytes. */
export type TransactionPlace = {
  readonly start: number;
  readonly end: number;
  readonly rawStart: number;
  readonly rawEnd: number;
  readonly contractRet: number;
};

/** Returns the transaction at a position. Byte views need ten times as much memory as positions, so they are created on demand. */
export function transactionAt(bytes: Uint8Array, place: TransactionPlace): TransactionBytes {
  const { start, end, rawStart, rawEnd, contractRet } = place;
  const [whole, rawData] = [bytes.subarray(start, end), bytes.subarray(rawStart, rawEnd)];
  return { whole, rawData, contractRet, isSuccess: contractRet === SUCCESS };
}

/** Reads `bytes[start, end)` in the same way as `splitTransaction`. */
export function scanTransaction(bytes: Uint8Array, start: number, end: number): TransactionPlace | null {
  let raw: ScannedField | null = null;
  let result: ScannedField | null = null;
  const isRead = visitFields(bytes, start, end, (field) => {
    if (field.wireType !== 2) return true;
    if (field.number === 1 && raw !== null) return false;
    if (field.number === 1) raw = field;
    if (field.number === 5) result ??= field;
    return true;
  });
  const place = raw as ScannedField | null;
  if (isRead === null || place === null || place.start === place.end) return null;
  const contractRet = readContractRet(bytes, result);
  return contractRet === null ? null : { start, end, rawStart: place.start, rawEnd: place.end, contractRet };
}

function readContractRet(bytes: Uint8Array, result: ScannedField | null): number | null {
  let contractRet = 0;
  const isRead = visitFields(bytes, result?.start ?? 0, result?.end ?? 0, ({ number, wireType, low32 }) => {
    if (number === 3 && wireType === 0) contractRet = low32;
    return true;
  });
  return isRead === null ? null : contractRet;
}

/**
 * Returns the bytes of a Transaction from the node's JSON, using `raw_data_hex` and never `raw_data`, or null if the JSON has another
 * shape. JSON omits fields that java-tron doesn't know, and some fields of a result aren't encoded here, so only a hash over `whole` shows
 * whether the bytes are complete. Example:
 * `{"ret":[{"contractRet":"SUCCESS"}],"signature":["755e…1401"],"txID":"…","raw_data":{…},"raw_data_hex":"0a02…8f34"}`. The result equals
 * `encodeTransaction(transactionFromJson(json))`, written into a single array.
 */
export function transactionBytes(json: unknown): TransactionBytes | null {
  const { raw_data_hex: rawHex, signature: signatures = [], ret: results = [] } = recordOf(json);
  if (typeof rawHex !== 'string' || rawHex === '' || !Array.isArray(signatures) || !Array.isArray(results)) return null;
  if (signatures.length > MAX_SIGNATURES || results.length > MAX_RESULTS) return null;
  let size = MAX_HEAD_BYTES + rawHex.length / 2;
  for (const signature of signatures) {
    if (typeof signature !== 'string') return null;
    size += MAX_HEAD_BYTES + signature.length / 2;
  }
  const resultBytes: number[][] = [];
  for (const result of results) {
    const bytes = resultOf(result);
    size += MAX_HEAD_BYTES + bytes.length;
    resultBytes.push(bytes);
  }
  const bytes = new Uint8Array(Math.ceil(size));
  const rawEnd = writeHex(rawHex, bytes, writeHead(bytes, 0, 1, rawHex.length / 2));
  let end = rawEnd;
  for (const signature of signatures as string[]) {
    if (end === null) return null;
    end = writeHex(signature, bytes, writeHead(bytes, end, 2, signature.length / 2));
  }
  if (rawEnd === null || end === null) return null;
  for (const result of resultBytes) {
    end = writeHead(bytes, end, 5, result.length);
    bytes.set(result, end);
    end += result.length;
  }
  const { contractRet: name = 'DEFAULT' } = recordOf(results[0]);
  const contractRet = (typeof name === 'string' ? contractRetNumber(name) : null) ?? -1;
  const rawData = bytes.subarray(rawEnd - rawHex.length / 2, rawEnd);
  return { whole: bytes.subarray(0, end), rawData, contractRet, isSuccess: contractRet === SUCCESS };
}

function resultOf(json: unknown): number[] {
  const { fee = 0, ret = 'SUCESS', contractRet = 'DEFAULT', ...rest } = recordOf(json);
  const bytes: number[] = [];
  pushInteger(bytes, 1, fee);
  pushInteger(bytes, 2, typeof ret === 'string' ? RESULT_CODES.indexOf(ret) : 0);
  pushInteger(bytes, 3, typeof contractRet === 'string' ? (contractRetNumber(contractRet) ?? 0) : 0);
  for (const [name, field] of RESULT_INTEGERS) pushInteger(bytes, field, rest[name]);
  return bytes;
}

/**
 * Appends an int64 field. As in proto3, zero is omitted. A value that isn't an integer, or that lost digits in JSON, is omitted as well.
 */
function pushInteger(bytes: number[], field: number, value: unknown): void {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value === 0) return;
  pushVarint(bytes, field << 3);
  pushVarint(bytes, value);
}

function pushVarint(bytes: number[], value: number): void {
  if (value >= 0 && value < 0x80) {
    bytes.push(value);
    return;
  }
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
}

/** Writes the tag and length of a length-delimited field. Returns the offset after them. */
function writeHead(bytes: Uint8Array, offset: number, field: number, length: number): number {
  let at = offset;
  bytes[at++] = (field << 3) | 2;
  let rest = length;
  while (rest >= 0x80) {
    bytes[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  bytes[at++] = rest;
  return at;
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
