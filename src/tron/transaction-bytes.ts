import { writeHex } from './hex.ts';
import { contractRetNumber } from './transaction.ts';

/** A whole Transaction as its block commits to it. `rawData` is the part of `whole` whose sha256 is the transaction id. */
export type TransactionBytes = {
  readonly whole: Uint8Array;
  readonly rawData: Uint8Array;
  /** The contractRet of its first result is SUCCESS. */
  readonly isSuccess: boolean;
};

/** Tron.proto `Transaction.Result`: the integers beside `ret` and `contractRet`. Who sends a transaction may have filled them in. */
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

/** `Transaction.Result.code`: nodes write the misspelt name. */
const RESULT_CODES = ['SUCESS', 'FAILED'];

/** A transaction has one result; five keys may sign it. A node never writes more, so more is refused. */
const MAX_RESULTS = 8;
const MAX_SIGNATURES = 8;

/** A tag of one byte and a length of at most five. */
const MAX_HEAD_BYTES = 6;

/**
 * The bytes of a Transaction in the node's JSON, from `raw_data_hex` and never from `raw_data`; null when it is not the
 * shape. Example: `{"ret":[{"contractRet":"SUCCESS"}],"signature":["755e…1401"],"txID":"…","raw_data":{…},"raw_data_hex":"0a02…8f34"}`.
 * It equals `encodeTransaction(transactionFromJson(json))`, written into one array.
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
    if (bytes === null) return null;
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
  const isSuccess = recordOf(results[0])['contractRet'] === 'SUCCESS';
  return { whole: bytes.subarray(0, end), rawData: bytes.subarray(rawEnd - rawHex.length / 2, rawEnd), isSuccess };
}

function resultOf(json: unknown): number[] | null {
  if (typeof json !== 'object' || json === null) return null;
  const { fee = 0, ret = 'SUCESS', contractRet = 'DEFAULT', ...rest } = json as Record<string, unknown>;
  const code = typeof ret === 'string' ? RESULT_CODES.indexOf(ret) : -1;
  const number = typeof contractRet === 'string' ? contractRetNumber(contractRet) : null;
  if (code < 0 || number === null) return null;
  const bytes: number[] = [];
  let isWhole = pushInteger(bytes, 1, fee);
  pushInteger(bytes, 2, code);
  pushInteger(bytes, 3, number);
  for (const [name, field] of RESULT_INTEGERS) isWhole = isWhole && pushInteger(bytes, field, rest[name] ?? 0);
  return isWhole ? bytes : null;
}

/** Appends an int64 field; zero is left out, as proto3 does. False for what is no integer below 2^53. */
function pushInteger(bytes: number[], field: number, value: unknown): boolean {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return false;
  if (value === 0) return true;
  pushVarint(bytes, field << 3);
  pushVarint(bytes, value);
  return true;
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

/** Writes tag and length of a length-delimited field; returns the offset behind them. */
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
