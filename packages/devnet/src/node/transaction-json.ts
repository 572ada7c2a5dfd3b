import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { bytesFromHex } from '@quittance/tron/hex';
import {
  type ContractCall,
  decodeRawTransaction,
  encodeRawTransaction,
  type RawTransaction,
} from '@quittance/tron/raw-transaction';
import { type Transaction, txIdOf } from '@quittance/tron/transaction';
import { giftJson } from '../chain/genesis.ts';
import {
  accountJson,
  accountParameter,
  hexParameter,
  integerParameter,
  ParameterError,
  type Parameters,
  textParameter,
} from '../chain/parameters.ts';

/** Returns a transaction's `txID`, `raw_data` and `raw_data_hex`, which are part of every response with a transaction. */
export function unsignedTransactionJson(rawDataHex: string, visible: boolean) {
  const rawData = hexToBytes(rawDataHex);
  const raw = decodeRawTransaction(rawData);
  const shown = raw === null ? giftJson(rawDataHex) : rawDataJson(raw, visible);
  if (shown === null) throw new Error('devnet contains a transaction that cannot be read');
  return { txID: txIdOf(rawData), raw_data: shown, raw_data_hex: rawDataHex };
}

/**
 * Returns the transaction in a `broadcasttransaction` body. Like java-tron, it builds the bytes from `raw_data` and ignores `raw_data_hex`.
 * The hex is used only for contract types that a devnet doesn't know, which are then refused.
 */
export function transactionOfJson(parameters: Parameters): Transaction {
  const visible = parameters['visible'] === true;
  const rawData = rawTransactionOfJson(objectAt(parameters, 'raw_data'), visible);
  const bytes =
    rawData.contract.kind === 'other'
      ? hexToBytes(hexParameter(parameters, 'raw_data_hex'))
      : encodeRawTransaction(rawData);
  const signatures = arrayAt(parameters, 'signature').map((text) => {
    const signature = bytesFromHex(text);
    if (signature === null) throw new ParameterError('INVALID hex String: signature');
    return signature;
  });
  return { rawData: bytes, signatures, results: [] };
}

function rawDataJson(raw: RawTransaction, visible: boolean) {
  const call = raw.contract;
  if (call.kind === 'other') throw new Error(`devnet contains a transaction of type ${call.type}`);
  const type = call.kind === 'trigger' ? 'TriggerSmartContract' : 'TransferContract';
  return {
    contract: [
      {
        parameter: { value: callJson(call, visible), type_url: `type.googleapis.com/protocol.${type}` },
        type,
        ...(raw.permissionId === 0 ? {} : { Permission_id: raw.permissionId }),
      },
    ],
    ref_block_bytes: raw.refBlockBytes,
    ref_block_hash: raw.refBlockHash,
    expiration: raw.expirationMs,
    ...(raw.memo === '' ? {} : { data: raw.memo }),
    ...(raw.feeLimitSun === 0n ? {} : { fee_limit: Number(raw.feeLimitSun) }),
    ...(raw.timestampMs === 0 ? {} : { timestamp: raw.timestampMs }),
  };
}

function callJson(call: Exclude<ContractCall, { kind: 'other' }>, visible: boolean) {
  const owner = accountJson(call.owner, visible);
  if (call.kind === 'transfer') {
    return { amount: Number(call.amountSun), owner_address: owner, to_address: accountJson(call.to, visible) };
  }
  return {
    ...(call.data === '' ? {} : { data: call.data }),
    owner_address: owner,
    contract_address: accountJson(call.contract, visible),
    ...(call.callValueSun === 0n ? {} : { call_value: Number(call.callValueSun) }),
  };
}

function rawTransactionOfJson(json: Parameters, visible: boolean): RawTransaction {
  const [contract, ...more] = arrayAt(json, 'contract');
  if (!isObject(contract) || more.length > 0) throw new ParameterError('a transaction needs exactly one contract');
  const value = { ...objectAt(objectAt(contract, 'parameter'), 'value'), visible };
  return {
    refBlockBytes: hexParameter(json, 'ref_block_bytes'),
    refBlockHash: hexParameter(json, 'ref_block_hash'),
    expirationMs: integerParameter(json, 'expiration'),
    timestampMs: integerParameter(json, 'timestamp'),
    feeLimitSun: BigInt(integerParameter(json, 'fee_limit')),
    memo: memoOf(json, visible),
    permissionId: integerParameter(contract, 'Permission_id'),
    contract: callOfJson(textParameter(contract, 'type'), value),
  };
}

function callOfJson(type: string, value: Parameters): ContractCall {
  if (type === 'TransferContract') {
    const amountSun = BigInt(integerParameter(value, 'amount'));
    return {
      kind: 'transfer',
      owner: accountParameter(value, 'owner_address'),
      to: accountParameter(value, 'to_address'),
      amountSun,
    };
  }
  if (type !== 'TriggerSmartContract') return { kind: 'other', type: -1 };
  return {
    kind: 'trigger',
    owner: accountParameter(value, 'owner_address'),
    contract: accountParameter(value, 'contract_address'),
    data: hexParameter(value, 'data'),
    callValueSun: BigInt(integerParameter(value, 'call_value')),
  };
}

/** The memo is hex or, in a `visible` transaction, plain text. */
function memoOf(json: Parameters, visible: boolean): string {
  return visible ? bytesToHex(Buffer.from(textParameter(json, 'data'))) : hexParameter(json, 'data');
}

function objectAt(json: Parameters, name: string): Parameters {
  const value = json[name];
  if (!isObject(value)) throw new ParameterError(`${name} is missing`);
  return value;
}

function arrayAt(json: Parameters, name: string): readonly unknown[] {
  const value = json[name];
  return Array.isArray(value) ? value : [];
}

function isObject(value: unknown): value is Parameters {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
