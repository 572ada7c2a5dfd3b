import { createHash } from 'node:crypto';
import { concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { contractRetNumber, encodeTransaction } from '@quittance/tron/transaction';
import { TRANSFER_TOPIC } from '@quittance/tron/usdt';
import type { RandomStream } from './random-stream.ts';

/** A transaction as a node stores it: its JSON in a block, its JSON among the infos, and the bytes to hash. */
export type MadeTransaction = { id: string; json: string; info: string; rawData: Uint8Array; whole: Uint8Array };

/** The action of a transaction: the contract's message in JSON and in protobuf, and its number in Tron.proto. */
export type Call = { type: number; name: string; json: object; bytes: Uint8Array; feeLimitSun: number };

export type Log = { address: string; topics: string[]; data: string };

/** The result of a transaction. `receipt` and `extra` are copied into the info. */
export type Outcome = { contractRet: string; fee: number; receipt: object; extra: object };

/** Heights and times of infos have a fixed width of 8 and 13 digits, so that they can be overwritten. */
export const NUMBER_PLACE = '10000000';
export const TIME_PLACE = '1000000000000';

/** How long a wallet keeps a transaction valid; one minute. */
const EXPIRATION_MS = 60_000;

/** Assembles a transaction. Its signature is random bytes, because nodes check it and Quittance only hashes it. */
export function makeTransaction(random: RandomStream, call: Call, outcome: Outcome): MadeTransaction {
  const [refBlockBytes, refBlockHash, signature] = [random.hex(2), random.hex(8), `${random.hex(64)}00`];
  const timestamp = 1_780_000_000_000 + random.below(2 ** 31);
  const expiration = timestamp + EXPIRATION_MS;
  const url = `type.googleapis.com/protocol.${call.name}`;
  const parameter = concatBytes(writeBytes(1, utf8ToBytes(url)), writeBytes(2, call.bytes));
  const rawData = concatBytes(
    writeBytes(1, hexToBytes(refBlockBytes)),
    writeBytes(4, hexToBytes(refBlockHash)),
    writeInt64(8, expiration),
    writeElement(11, concatBytes(writeInt64(1, call.type), writeElement(2, parameter))),
    writeInt64(14, timestamp),
    writeInt64(18, call.feeLimitSun),
  );
  const id = createHash('sha256').update(rawData).digest('hex');
  const json = {
    ret: [{ contractRet: outcome.contractRet }],
    signature: [signature],
    txID: id,
    raw_data: {
      contract: [{ parameter: { value: call.json, type_url: url }, type: call.name }],
      ref_block_bytes: refBlockBytes,
      ref_block_hash: refBlockHash,
      expiration,
      ...(call.feeLimitSun === 0 ? {} : { fee_limit: call.feeLimitSun }),
      timestamp,
    },
    raw_data_hex: Buffer.from(rawData).toString('hex'),
  };
  const info = {
    id,
    ...(outcome.fee === 0 ? {} : { fee: outcome.fee }),
    blockNumber: Number(NUMBER_PLACE),
    blockTimeStamp: Number(TIME_PLACE),
    ...outcome.extra,
    receipt: outcome.receipt,
  };
  const results = [{ feeSun: 0n, ret: 0, contractRet: contractRetNumber(outcome.contractRet) ?? 0 }];
  const whole = encodeTransaction({ rawData, signatures: [hexToBytes(signature)], results });
  return { id, json: JSON.stringify(json), info: JSON.stringify(info), rawData, whole };
}

/** A call of a contract. Accounts are 40 hex characters. */
export function triggerCall(owner: string, contract: string, data: string): Call {
  const bytes = concatBytes(accountField(1, owner), accountField(2, contract), writeBytes(4, hexToBytes(data)));
  const json = { data, owner_address: `41${owner}`, contract_address: `41${contract}` };
  return { type: 31, name: 'TriggerSmartContract', json, bytes, feeLimitSun: 100_000_000 };
}

export function trxCall(owner: string, to: string, amount: number): Call {
  const bytes = concatBytes(accountField(1, owner), accountField(2, to), writeInt64(3, amount));
  const json = { amount, owner_address: `41${owner}`, to_address: `41${to}` };
  return { type: 1, name: 'TransferContract', json, bytes, feeLimitSun: 0 };
}

/** Energy delegated to another account: the most frequent kind after transfers and calls. */
export function delegateCall(owner: string, receiver: string, balance: number): Call {
  const bytes = concatBytes(
    accountField(1, owner),
    writeInt64(2, 1),
    writeInt64(3, balance),
    accountField(4, receiver),
  );
  const json = { balance, resource: 'ENERGY', receiver_address: `41${receiver}`, owner_address: `41${owner}` };
  return { type: 57, name: 'DelegateResourceContract', json, bytes, feeLimitSun: 0 };
}

/** A transfer of a TRC-10 token. */
export function assetCall(owner: string, to: string, amount: number): Call {
  const name = Buffer.from('1002000').toString('hex');
  const bytes = concatBytes(
    writeBytes(1, hexToBytes(name)),
    accountField(2, owner),
    accountField(3, to),
    writeInt64(4, amount),
  );
  const json = { amount, asset_name: name, owner_address: `41${owner}`, to_address: `41${to}` };
  return { type: 2, name: 'TransferAssetContract', json, bytes, feeLimitSun: 0 };
}

export function transferLog(token: string, from: string, to: string, value: bigint): Log {
  const topics = [TRANSFER_TOPIC, from.padStart(64, '0'), to.padStart(64, '0')];
  return { address: token, topics, data: value.toString(16).padStart(64, '0') };
}

function accountField(number: number, account: string): Uint8Array {
  return writeBytes(number, hexToBytes(`41${account}`));
}
