import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes } from '@noble/hashes/utils.js';
import { bytesFromHex } from './hex.ts';
import { bytesField, int64Field, readMessage, repeatedBytesField, writeElement, writeInt64 } from './protobuf.ts';

/** A whole Transaction (Tron.proto). `rawData` is the part that is hashed and signed; `signatures` are r‖s‖v. */
export interface Transaction {
  readonly rawData: Uint8Array;
  readonly signatures: readonly Uint8Array[];
  readonly results: readonly TransactionResult[];
}

/** `Transaction.Result`, with enum values as numbers. `ret` is 0 for SUCESS (sic) and 1 for FAILED. */
interface TransactionResult {
  readonly feeSun: bigint;
  readonly ret: number;
  readonly contractRet: number;
}

/**
 * A transaction as it appears in a node's JSON for a block. Example:
 * `{"ret":[{"contractRet":"SUCCESS"}],"signature":["755e…1401"],"txID":"…","raw_data":{…},"raw_data_hex":"0a02…8f34"}`.
 */
export interface TransactionJson {
  readonly raw_data_hex: string;
  readonly signature?: readonly string[];
  readonly ret?: readonly { readonly fee?: number; readonly ret?: string; readonly contractRet?: string }[];
}

/** Tron.proto `Transaction.Result.contractResult`, indexed by number. */
const CONTRACT_RETS = [
  'DEFAULT',
  'SUCCESS',
  'REVERT',
  'BAD_JUMP_DESTINATION',
  'OUT_OF_MEMORY',
  'PRECOMPILED_CONTRACT',
  'STACK_TOO_SMALL',
  'STACK_TOO_LARGE',
  'ILLEGAL_OPERATION',
  'STACK_OVERFLOW',
  'OUT_OF_ENERGY',
  'OUT_OF_TIME',
  'JVM_STACK_OVER_FLOW',
  'UNKNOWN',
  'TRANSFER_FAILED',
  'INVALID_CODE',
] as const;

/** The number of `SUCCESS`. */
export const SUCCESS = 1;

export type ContractRet = (typeof CONTRACT_RETS)[number];

const RESULT_CODES = ['SUCESS', 'FAILED'];

/** A transaction has one result and at most five signatures. Nodes never write more, so more is refused. */
const MAX_RESULTS = 8;
const MAX_SIGNATURES = 8;

/** Returns the protobuf bytes of a whole Transaction: raw_data=1, signature=2, ret=5. Their sha256 is the leaf in `txTrieRoot`. */
export function encodeTransaction({ rawData, signatures, results }: Transaction): Uint8Array {
  return concatBytes(
    writeElement(1, rawData),
    ...signatures.map((signature) => writeElement(2, signature)),
    ...results.map(({ feeSun, ret, contractRet }) =>
      writeElement(5, concatBytes(writeInt64(1, feeSun), writeInt64(2, ret), writeInt64(3, contractRet))),
    ),
  );
}

/** Reads a whole Transaction, or returns null if the bytes are malformed or have no raw_data. */
export function decodeTransaction(bytes: Uint8Array): Transaction | null {
  const fields = readMessage(bytes);
  if (fields === null) return null;
  const rawData = bytesField(fields, 1);
  if (rawData.length === 0) return null;
  const results: TransactionResult[] = [];
  for (const result of repeatedBytesField(fields, 5)) {
    const parts = readMessage(result);
    if (parts === null) return null;
    results.push({
      feeSun: int64Field(parts, 1),
      ret: Number(int64Field(parts, 2)),
      contractRet: Number(int64Field(parts, 3)),
    });
  }
  return { rawData, signatures: repeatedBytesField(fields, 2), results };
}

/** Returns the Transaction in the node's JSON, using `raw_data_hex` and never `raw_data`, or null for bad hex or an unknown enum name. */
export function transactionFromJson(json: TransactionJson): Transaction | null {
  const rawData = bytesFromHex(json.raw_data_hex);
  const signatureTexts = json.signature ?? [];
  const resultTexts = json.ret ?? [];
  if (rawData === null || rawData.length === 0) return null;
  if (signatureTexts.length > MAX_SIGNATURES || resultTexts.length > MAX_RESULTS) return null;
  const signatures: Uint8Array[] = [];
  for (const text of signatureTexts) {
    const signature = bytesFromHex(text);
    if (signature === null) return null;
    signatures.push(signature);
  }
  const results: TransactionResult[] = [];
  for (const { fee = 0, ret = 'SUCESS', contractRet = 'DEFAULT' } of resultTexts) {
    const [code, number] = [RESULT_CODES.indexOf(ret), contractRetNumber(contractRet)];
    if (!Number.isSafeInteger(fee) || code < 0 || number === null) return null;
    results.push({ feeSun: BigInt(fee), ret: code, contractRet: number });
  }
  return { rawData, signatures, results };
}

/** Returns the transaction id (64 hex characters). It's the sha256 of raw_data only, so signatures and results don't change it. */
export function txIdOf(rawData: Uint8Array): string {
  return bytesToHex(sha256(rawData));
}

/** Returns the number of a contractRet name in wire format, or null for an unknown name. */
export function contractRetNumber(name: string): number | null {
  const index = (CONTRACT_RETS as readonly string[]).indexOf(name);
  return index < 0 ? null : index;
}

/** Returns the name of a contractRet number, or null for an unknown number. */
export function contractRetName(number: number): ContractRet | null {
  return CONTRACT_RETS[number] ?? null;
}
