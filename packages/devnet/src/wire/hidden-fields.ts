import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { int64Field, readMessage, repeatedBytesField, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { scanMessage } from '@quittance/tron/scan-message';
import { decodeTransaction, type Transaction } from '@quittance/tron/transaction';
import { decodeMessage, encodeMessage } from './protobuf-json.ts';
import { RESULT } from './schemas.ts';

/**
 * The fields of a Transaction other than raw_data, signatures and its Result's contractRet, as hex in wire format. The chain keeps them and
 * the Merkle leaf covers them, but JSON shows only the fields that java-tron knows.
 */
export interface HiddenFields {
  /** Fields of the Transaction itself. Anyone can add them. */
  readonly outer?: string;
  /**
   * Fields of its only Result, in the order in which java-tron writes them; `contractRet` comes between the fields below and above number
   * 3. Any peer can add them.
   */
  readonly result?: string;
}

/** A transaction as it was sent. */
export type SentTransaction = Transaction & { readonly hidden?: HiddenFields };

const [RAW_DATA, SIGNATURE, RET, CONTRACT_RET] = [1, 2, 5, 3];

/** Reads a whole Transaction with all its fields, or returns null if the bytes are malformed or have no raw_data. */
export function readSent(bytes: Uint8Array): SentTransaction | null {
  const transaction = decodeTransaction(bytes);
  if (transaction === null) return null;
  const hidden = { ...hiddenPart('outer', outerOf(bytes)), ...hiddenPart('result', resultOf(bytes)) };
  return Object.keys(hidden).length === 0 ? transaction : { ...transaction, hidden };
}

/** Returns the transaction as a node accepts it from a client. From a peer, a node also accepts the Result, except for `contractRet`. */
export function withoutResult({ hidden, ...transaction }: SentTransaction): SentTransaction {
  return hidden?.outer === undefined ? transaction : { ...transaction, hidden: { outer: hidden.outer } };
}

/** Returns the whole Transaction: with its outcome in the block or, if `contractRet` is null, as it was sent. */
export function wholeTransaction(transaction: {
  readonly rawDataHex: string;
  readonly signatures: readonly string[];
  readonly contractRet: number | null;
  readonly hidden?: HiddenFields | undefined;
}): Uint8Array {
  const { rawDataHex, signatures, contractRet, hidden = {} } = transaction;
  const { outer = '', result = '' } = hidden;
  const hasResult = contractRet !== null || result !== '';
  return concatBytes(
    writeElement(RAW_DATA, hexToBytes(rawDataHex)),
    ...signatures.map((each) => writeElement(SIGNATURE, hexToBytes(each))),
    ...(hasResult ? [writeElement(RET, resultBytes(result, contractRet ?? 0))] : []),
    hexToBytes(outer),
  );
}

/** Returns `ret` as JSON shows it. */
export function resultJson(contractRet: number, hidden: HiddenFields | undefined): object {
  return decodeMessage(RESULT, resultBytes(hidden?.result ?? '', contractRet)) ?? {};
}

/** Returns an unsigned Transaction that has a Result with these bytes. */
export function unsignedBytes(rawData: Uint8Array, result: Uint8Array): Uint8Array {
  return concatBytes(writeElement(RAW_DATA, rawData), writeElement(RET, result));
}

/** Returns the bytes of a Result that is given as JSON. */
export function resultBytesOf(json: object): Uint8Array {
  return encodeMessage(RESULT, json);
}

function resultBytes(hiddenResult: string, contractRet: number): Uint8Array {
  const fields = wireFields(hexToBytes(hiddenResult));
  const behind = fields.findIndex(({ number }) => number > CONTRACT_RET);
  const at = behind < 0 ? fields.length : behind;
  return concatBytes(
    ...fields.slice(0, at).map(({ bytes }) => bytes),
    writeInt64(CONTRACT_RET, contractRet),
    ...fields.slice(at).map(({ bytes }) => bytes),
  );
}

function outerOf(bytes: Uint8Array): Uint8Array {
  const unknown = wireFields(bytes).filter(
    ({ number }) => number !== RAW_DATA && number !== SIGNATURE && number !== RET,
  );
  return joined(unknown);
}

/**
 * Returns the fields of the first Result as java-tron rewrites them: it drops any other Results (`removeRedundantRet`) and sets contractRet
 * itself.
 */
function resultOf(bytes: Uint8Array): Uint8Array {
  const [result] = repeatedBytesField(readMessage(bytes) ?? [], RET);
  if (result === undefined) return new Uint8Array(0);
  const known = new Map(Object.values(RESULT).map((each) => [each.number, each]));
  const values = readMessage(result) ?? [];
  const all = wireFields(result);
  const isKept = (field: WireField): boolean => {
    const shape = known.get(field.number);
    if (shape === undefined || shape.isList) return true;
    // If a field occurs twice, the last one counts. A field that is zero isn't written.
    const isLast = all.findLast(({ number }) => number === field.number) === field;
    const isVarint = values.some(({ kind, number }) => kind === 'varint' && number === field.number);
    return isLast && !(isVarint && int64Field(values, field.number) === 0n);
  };
  const kept = all.filter((each) => each.number !== CONTRACT_RET && isKept(each));
  return concatBytes(
    joined(kept.filter(({ number }) => known.has(number))),
    joined(kept.filter(({ number }) => !known.has(number))),
  );
}

interface WireField {
  readonly number: number;
  /** The tag and the value. */
  readonly bytes: Uint8Array;
}

function wireFields(bytes: Uint8Array): WireField[] {
  let from = 0;
  return (scanMessage(bytes, 0, bytes.length)?.fields ?? []).map(({ number, end }) => {
    const whole = bytes.subarray(from, end);
    from = end;
    return { number, bytes: whole };
  });
}

function joined(fields: readonly WireField[]): Uint8Array {
  return concatBytes(...fields.toSorted((left, right) => left.number - right.number).map(({ bytes }) => bytes));
}

function hiddenPart(name: keyof HiddenFields, bytes: Uint8Array): HiddenFields {
  return bytes.length === 0 ? {} : { [name]: bytesToHex(bytes) };
}
