import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { encodeRawTransaction, type RawTransaction } from '@quittance/tron/raw-transaction';
import { signMessage } from '@quittance/tron/signature';
import { encodeTransaction, type TransactionJson, transactionFromJson, txIdOf } from '@quittance/tron/transaction';
import { encodeTransferCall, TRANSFER_TOPIC } from '@quittance/tron/usdt';

/** Block 66987565 of the Nile network, from `getblock` with `detail: false`. */
export const NILE_HEADER = {
  blockID: '0000000003fe262d52bfa4b2814f816fd2e57af5b98a33d60d8630a03a908e0e',
  block_header: {
    raw_data: {
      number: 66987565,
      txTrieRoot: 'faf8fe3858339ead25cc892461c82a59b84dca4a51c45b026676bf3f45a352a2',
      witness_address: '41b2f713d57dbcec679d93a8849fa0cd0e4db594ba',
      parentHash: '0000000003fe262c85cd6b02033f4c3e5c1efa35de256a17bd906dc61fb1aeed',
      version: 34,
      timestamp: 1777445121000,
    },
    witness_signature:
      '5b3cf6cb15d52947989f7726f4907a144b39ccd667a1a0f98707b40cdfe65b96173ddf34ae8dcc5e78f136e0cf903a15c7128984aa2191f02333209d1879d3f900',
  },
};

/** The only transaction in a block of a private java-tron network, and that block's txTrieRoot. */
export const PRIVATE_TRANSACTION = {
  ret: [{ contractRet: 'SUCCESS' }],
  signature: [
    '755e1552868a1734c90c28dacb66e58f85eaa5fc2845593280e3b6ee1cf1b7af793cc378d8c3ad144542502270ab852095665abfffdea306200a9942a67e161401',
  ],
  raw_data_hex:
    '0a0200a42208b0ef6ad98a02403e40b8e1e8d38f345a57083b12530a38747970652e676f6f676c65617069732e636f6d2f70726f746f636f6c2e43616e63656c416c6c556e667265657a655632436f6e747261637412170a1541dcf2957055e8fcde477a077ecfeddf5ab235754770a1899cbf8f34',
};
export const PRIVATE_ROOT = 'c85f5050cb4a05c58222017f823191d5ae1ca07b7bd7f090f493a35c10f03491';

export const USDT = 'd53adb8bb7b45de60d0dc3d03ba0c187093b919d' as AccountHex;
export const OTHER_CONTRACT = '11'.repeat(20) as AccountHex;
export const SLOT_MS = 3000;

const KEY = new Uint8Array(32).fill(7);
export const PRODUCER = accountFromPublicKey(secp256k1.getPublicKey(KEY, false));

export type LogAnswer = { address: string; topics: string[]; data: string };
export type TransactionAnswer = TransactionJson & { txID: string; raw_data: object };
export type InfoAnswer = {
  id: string;
  blockNumber: number;
  blockTimeStamp: number;
  receipt: { result?: string; net_usage?: number };
  result?: string;
  log?: LogAnswer[];
};
export type BlockAnswer = {
  blockID: string;
  block_header: { raw_data: BlockHeaderJson; witness_signature: string };
  transactions?: TransactionAnswer[];
};

/** A transaction to build: its raw_data, its result and the logs of its info. */
export type Planned = { rawData: Uint8Array; contractRet?: string; logs?: LogAnswer[]; isContract?: boolean };

/** Builds a block and its infos as a node returns them, signed by `PRODUCER`. */
export function buildBlock(planned: readonly Planned[], number = 156): { block: BlockAnswer; infos: InfoAnswer[] } {
  const timestamp = 1790865477000;
  const transactions = planned.map(({ rawData, contractRet = 'SUCCESS' }, index) => ({
    ret: [{ contractRet }],
    signature: [(index + 1).toString(16).padStart(2, '0').repeat(65)],
    txID: txIdOf(rawData),
    raw_data: { note: 'never read' },
    raw_data_hex: bytesToHex(rawData),
  }));
  const infos = planned.map(({ contractRet = 'SUCCESS', logs = [], isContract = true }, index) => ({
    id: transactions[index]?.txID ?? '',
    blockNumber: number,
    blockTimeStamp: timestamp,
    receipt: { net_usage: 345, ...(isContract ? { result: contractRet } : {}) },
    ...(contractRet === 'SUCCESS' ? {} : { result: 'FAILED' }),
    ...(logs.length === 0 ? {} : { log: logs }),
  }));
  return { block: sealBlock(transactions, { number, timestamp }), infos };
}

/** Builds a header for any transactions in a node's format. */
export function sealBlock(
  transactions: readonly TransactionAnswer[],
  { number = 156, timestamp = 1790865477000, ...rest }: BlockHeaderJson = {},
): BlockAnswer {
  const leaves = transactions.map((json) => {
    const transaction = transactionFromJson(json);
    if (transaction === null) throw new Error('the transaction cannot be encoded');
    return encodeTransaction(transaction);
  });
  const header = {
    number,
    txTrieRoot: txTrieRoot(leaves),
    witness_address: `41${PRODUCER}`,
    parentHash: `${(number - 1).toString(16).padStart(16, '0')}${'5a'.repeat(24)}`,
    version: 34,
    timestamp,
    ...rest,
  };
  return signBlock(header, transactions);
}

export function signBlock(header: BlockHeaderJson, transactions: readonly TransactionAnswer[]): BlockAnswer {
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error('the header cannot be encoded');
  return {
    blockID: blockIdOf(bytes, header.number ?? 0),
    block_header: { raw_data: header, witness_signature: signMessage(bytes, KEY) },
    ...(transactions.length === 0 ? {} : { transactions: [...transactions] }),
  };
}

const BASE = {
  refBlockBytes: '00a4',
  refBlockHash: 'b0ef6ad98a02403e',
  expirationMs: 1790865530000,
  timestampMs: 1790865470000,
  feeLimitSun: 100_000_000n,
  memo: '',
  permissionId: 0,
};

/** Builds the raw_data of a contract call. `nonce` distinguishes equal ones. */
export function rawCall(
  { owner, contract = USDT, data }: { owner: AccountHex; contract?: AccountHex; data: string },
  nonce = 0,
): Uint8Array {
  const call = { kind: 'trigger', owner, contract, data, callValueSun: 0n } satisfies RawTransaction['contract'];
  return encodeRawTransaction({ ...BASE, timestampMs: BASE.timestampMs + nonce, contract: call });
}

/** Builds the raw_data of a plain TRX transfer. */
export function rawTransfer({ owner, to }: { owner: AccountHex; to: AccountHex }, nonce = 0): Uint8Array {
  const transfer = { kind: 'transfer', owner, to, amountSun: 5n } satisfies RawTransaction['contract'];
  return encodeRawTransaction({ ...BASE, timestampMs: BASE.timestampMs + nonce, contract: transfer });
}

export type Move = { from: AccountHex; to: AccountHex; value: bigint };

export function transferLog({ from, to, value }: Move, address: string = USDT): LogAnswer {
  const topics = [TRANSFER_TOPIC, from.padStart(64, '0'), to.padStart(64, '0')];
  return { address, topics, data: value.toString(16).padStart(64, '0') };
}

/** Builds a direct `transfer` with its log. */
export function directTransfer(move: Move, nonce = 0): Planned {
  const rawData = rawCall({ owner: move.from, data: encodeTransferCall(move.to, move.value) }, nonce);
  return { rawData, logs: [transferLog(move)] };
}

/** Returns every string and number of a JSON value with its path. */
export function leavesOf(value: unknown, path: readonly string[] = []): { path: readonly string[]; value: unknown }[] {
  if (typeof value !== 'object' || value === null) return [{ path, value }];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

/** Flips one bit of the leaf at `path`: in a number, in the bytes of a hex string, or in the first letter of a name. */
export function flipBit<Json>(json: Json, path: readonly string[], bit: number): Json {
  const copy = structuredClone(json);
  const parent = path
    .slice(0, -1)
    .reduce<Record<string, unknown>>((at, key) => at[key] as Record<string, unknown>, copy as Record<string, unknown>);
  const key = path.at(-1) ?? '';
  parent[key] = flipped(parent[key], bit);
  return copy;
}

function flipped(value: unknown, bit: number): unknown {
  if (typeof value === 'number') return Number(BigInt(value) ^ (1n << BigInt(bit % 40)));
  if (typeof value !== 'string' || value === '') return value;
  const isHex = /^(?:[0-9a-f]{2})+$/.test(value);
  const bytes = Buffer.from(value, isHex ? 'hex' : 'latin1');
  const at = bit % (bytes.length * 8);
  bytes[at >> 3] = (bytes[at >> 3] ?? 0) ^ (1 << (at & 7));
  return bytes.toString(isHex ? 'hex' : 'latin1');
}
