import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountFromHex41 } from './address.ts';
import {
  bytesField,
  int64Field,
  readMessage,
  repeatedBytesField,
  writeBytes,
  writeElement,
  writeInt64,
} from './protobuf.ts';

/** `Transaction.raw` with its single contract. Byte fields are hex. A fee limit of 0 means that none was set. */
export interface RawTransaction {
  readonly refBlockBytes: string;
  readonly refBlockHash: string;
  readonly expirationMs: number;
  readonly timestampMs: number;
  readonly feeLimitSun: bigint;
  /** The memo, `raw_data.data`. */
  readonly memo: string;
  readonly permissionId: number;
  readonly contract: ContractCall;
}

/** The transaction's action. Any action except a contract call or a TRX transfer is `other`, with its number in Tron.proto. */
export type ContractCall =
  | {
      readonly kind: 'trigger';
      readonly owner: AccountHex;
      readonly contract: AccountHex;
      readonly data: string;
      readonly callValueSun: bigint;
    }
  | { readonly kind: 'transfer'; readonly owner: AccountHex; readonly to: AccountHex; readonly amountSun: bigint }
  | { readonly kind: 'other'; readonly type: number };

/** Tron.proto `Transaction.Contract.ContractType`. */
const TRANSFER_TYPE = 1;
const TRIGGER_TYPE = 31;

/** Reads raw_data, or returns null if it's malformed or doesn't have exactly one contract (java-tron allows only one). */
export function decodeRawTransaction(rawData: Uint8Array): RawTransaction | null {
  const fields = readMessage(rawData);
  if (fields === null) return null;
  const [contractBytes, ...more] = repeatedBytesField(fields, 11);
  const contractFields = contractBytes === undefined || more.length > 0 ? null : readMessage(contractBytes);
  if (contractFields === null) return null;
  const parameter = readMessage(bytesField(contractFields, 2));
  const contract =
    parameter === null ? null : decodeCall(Number(int64Field(contractFields, 1)), bytesField(parameter, 2));
  const [expirationMs, timestampMs] = [Number(int64Field(fields, 8)), Number(int64Field(fields, 14))];
  if (contract === null || !Number.isSafeInteger(expirationMs) || !Number.isSafeInteger(timestampMs)) return null;
  return {
    refBlockBytes: bytesToHex(bytesField(fields, 1)),
    refBlockHash: bytesToHex(bytesField(fields, 4)),
    expirationMs,
    timestampMs,
    feeLimitSun: int64Field(fields, 18),
    memo: bytesToHex(bytesField(fields, 10)),
    permissionId: Number(int64Field(contractFields, 5)),
    contract,
  };
}

/**
 * The bytes of raw_data, field by field in ascending order, as java-tron and TronWeb write them. Throws on bad hex or an `other` contract.
 */
export function encodeRawTransaction(raw: RawTransaction): Uint8Array {
  const { type, name, value } = encodeCall(raw.contract);
  const parameter = concatBytes(
    writeBytes(1, utf8ToBytes(`type.googleapis.com/protocol.${name}`)),
    writeBytes(2, value),
  );
  const contract = concatBytes(writeInt64(1, type), writeElement(2, parameter), writeInt64(5, raw.permissionId));
  return concatBytes(
    writeBytes(1, hexToBytes(raw.refBlockBytes)),
    writeBytes(4, hexToBytes(raw.refBlockHash)),
    writeInt64(8, raw.expirationMs),
    writeBytes(10, hexToBytes(raw.memo)),
    writeElement(11, contract),
    writeInt64(14, raw.timestampMs),
    writeInt64(18, raw.feeLimitSun),
  );
}

function decodeCall(type: number, bytes: Uint8Array): ContractCall | null {
  if (type !== TRIGGER_TYPE && type !== TRANSFER_TYPE) return { kind: 'other', type };
  const fields = readMessage(bytes);
  if (fields === null) return null;
  const owner = accountFromHex41(bytesToHex(bytesField(fields, 1)));
  const target = accountFromHex41(bytesToHex(bytesField(fields, 2)));
  if (owner === null || target === null) return null;
  const amount = int64Field(fields, 3);
  if (type === TRANSFER_TYPE) return { kind: 'transfer', owner, to: target, amountSun: amount };
  const data = bytesToHex(bytesField(fields, 4));
  return { kind: 'trigger', owner, contract: target, data, callValueSun: amount };
}

function encodeCall(call: ContractCall): { type: number; name: string; value: Uint8Array } {
  switch (call.kind) {
    case 'transfer':
      return {
        type: TRANSFER_TYPE,
        name: 'TransferContract',
        value: concatBytes(accountField(1, call.owner), accountField(2, call.to), writeInt64(3, call.amountSun)),
      };
    case 'trigger':
      return {
        type: TRIGGER_TYPE,
        name: 'TriggerSmartContract',
        value: concatBytes(
          accountField(1, call.owner),
          accountField(2, call.contract),
          writeInt64(3, call.callValueSun),
          writeBytes(4, hexToBytes(call.data)),
        ),
      };
    case 'other':
      throw new TypeError(`a contract of type ${call.type} cannot be encoded: only transfers and contract calls can`);
  }
}

function accountField(number: number, account: AccountHex): Uint8Array {
  return writeBytes(number, hexToBytes(`41${account}`));
}
