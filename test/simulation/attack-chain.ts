import { secp256k1 } from '@noble/curves/secp256k1.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { keyPairOf } from '@quittance/devnet/evm/keys';
import type { AccountHex } from '@quittance/tron/address';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { encodeRawTransaction } from '@quittance/tron/raw-transaction';
import { contractRetNumber, encodeTransaction, txIdOf } from '@quittance/tron/transaction';
import { encodeTransferCall, TRANSFER_TOPIC, USDT_CONTRACTS } from '@quittance/tron/usdt';

type Key = ReturnType<typeof keyPairOf>;
type Log = { from: string; to: string; amount: bigint };
/** `events` are the topics of other USDT events. `hidden` are fields, in hex, that the block commits to and JSON doesn't show. */
export type Transaction = {
  id: string;
  hex: string;
  logs: readonly Log[];
  events?: readonly string[];
  hidden?: string;
};
export type Block = {
  number: number;
  id: string;
  parentId: string;
  time: number;
  header: BlockHeaderJson;
  signature: string;
  transactions: readonly Transaction[];
};
export type Mark = Pick<Block, 'number' | 'id' | 'time'>;

export const SLOT_MS = 3000;
export const USDT = USDT_CONTRACTS.nile.account;
/** 2 h into a voting period. */
const START_MS = 1_800_000_000_000;
const START_NUMBER = 1_000_000;
const PAUSE_TOPIC = '6985a02210a168e66602d3235cb6db0e70f92b3ba4d376a33c0f3d9434bff625';
const PAYER = '7e5f4552091a69125d5dfcb7b8c2659029395bdf' as AccountHex;
const EXCHANGE = '22'.repeat(20) as AccountHex;

export function keysNamed(name: string, count: number): Key[] {
  return Array.from({ length: count }, (_, index) => keyPairOf(sha256(utf8ToBytes(`${name}${index}`))));
}

/** As many as the real network has. */
export const HONEST: readonly Key[] = keysNamed('honest', 27);
export const EVIL: readonly Key[] = keysNamed('evil', 27);
export const keyAt = (keys: readonly Key[], index: number): Key => {
  const key = keys[index % keys.length];
  if (key === undefined) throw new Error('no keys');
  return key;
};

let nonce = 0;
function call(contract: AccountHex, data: string, logs: Log[]): Transaction {
  nonce += 1;
  const rawData = encodeRawTransaction({
    refBlockBytes: '0000',
    refBlockHash: '00'.repeat(8),
    expirationMs: nonce,
    timestampMs: 1,
    feeLimitSun: 0n,
    memo: '',
    permissionId: 0,
    contract: { kind: 'trigger', owner: PAYER, contract, data, callValueSun: 0n },
  });
  return { id: txIdOf(rawData), hex: bytesToHex(rawData), logs };
}

/** A call of `transfer`, which the header proves. With Tether's fee, the last log goes to the contract's owner. */
export function directTransfer(to: string, amount: bigint, fee?: { owner: string; amount: bigint }): Transaction {
  const logs = [{ from: PAYER, to, amount: amount - (fee?.amount ?? 0n) }];
  if (fee !== undefined) logs.push({ from: PAYER, to: fee.owner, amount: fee.amount });
  return call(USDT, encodeTransferCall(to as AccountHex, amount), logs);
}

/** A transfer inside another contract, such as an exchange's payment: it appears only in logs. */
export function innerTransfer(to: string, amount: bigint, from: string = PAYER): Transaction {
  return call(EXCHANGE, 'aabbccdd', [{ from, to, amount }]);
}

/** The contract's owner pauses every transfer, through its multi-signature wallet. */
export function pause(): Transaction {
  return { ...call(EXCHANGE, 'aabbccde', []), events: [PAUSE_TOPIC] };
}

const { n: ORDER } = secp256k1.Point.CURVE();
const NONCE = 2n ** 200n + 1n;
const R = secp256k1.Point.BASE.multiply(NONCE).toAffine();
const INVERSE = secp256k1.Point.Fn.inv(NONCE);

/**
 * Signs sha256(message) as `signMessage` does, but always with the same nonce: a thousandth of the work for these thousands of blocks. It
 * reveals the keys, which only tests use.
 */
function signQuickly(message: Uint8Array, privateKey: Uint8Array): string {
  const numberOf = (bytes: Uint8Array) => BigInt(`0x${bytesToHex(bytes)}`);
  const s = (INVERSE * (numberOf(sha256(message)) + R.x * numberOf(privateKey))) % ORDER;
  const isLow = s <= ORDER / 2n;
  const hex = (value: bigint, length: number) => value.toString(16).padStart(length, '0');
  return hex(R.x, 64) + hex(isLow ? s : ORDER - s, 64) + hex((R.y & 1n) ^ (isLow ? 0n : 1n), 2);
}

export function blockAfter(
  parent: Mark,
  key: Key,
  transactions: readonly Transaction[] = [],
  time = parent.time + SLOT_MS,
): Block {
  const results = [{ feeSun: 0n, ret: 0, contractRet: contractRetNumber('SUCCESS') ?? 0 }];
  const leaves = transactions.map(({ hex, hidden = '' }) =>
    concatBytes(encodeTransaction({ rawData: hexToBytes(hex), signatures: [], results }), hexToBytes(hidden)),
  );
  const number = parent.number + 1;
  const header = {
    number,
    timestamp: time,
    parentHash: parent.id,
    txTrieRoot: txTrieRoot(leaves),
    witness_address: `41${key.account}`,
    version: 34,
  };
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error('the header cannot be encoded');
  let signature: string | undefined;
  return {
    ...{ number, id: blockIdOf(bytes, number), parentId: parent.id, time, header, transactions },
    // Calculated on demand, because many blocks never need it.
    get signature() {
      signature ??= signQuickly(bytes, key.privateKey);
      return signature;
    },
  };
}

/** Blocks signed with other keys than the producers', each built on the previous one. */
export function evilBranch(parent: Mark, count: number): Block[] {
  const blocks: Block[] = [];
  for (let at = parent; blocks.length < count; ) {
    const block = blockAfter(at, keyAt(EVIL, blocks.length));
    blocks.push(block);
    at = block;
  }
  return blocks;
}

export type AttackChain = ReturnType<typeof createAttackChain>;

/** The honest chain: its producers take turns, and a block is irreversible once 18 others are on it. */
export function createAttackChain() {
  const before = { number: START_NUMBER - 1, time: START_MS - SLOT_MS };
  const genesis = blockAfter(
    { ...before, id: `${before.number.toString(16).padStart(16, '0')}${'ff'.repeat(24)}` },
    keyAt(HONEST, 0),
  );
  const blocks = [genesis];
  const chain = {
    start: genesis as Mark,
    producers: HONEST,
    head: () => blocks.at(-1) ?? genesis,
    at: (number: number) => blocks[number - genesis.number],
    solid: () => blocks[Math.max(0, blocks.length - 19)] ?? genesis,
    /** `gapMs` is the time since the previous block; slots may be empty. `key` replaces the producer whose turn it is. */
    mine(transactions: readonly Transaction[] = [], { gapMs = SLOT_MS, key }: { gapMs?: number; key?: Key } = {}) {
      const head = chain.head();
      const producer = key ?? keyAt(chain.producers, head.number + 1);
      blocks.push(blockAfter(head, producer, transactions, head.time + gapMs));
    },
  };
  return chain;
}

export function blockJson({ id, header, signature, transactions }: Block, hasDetail: boolean): object {
  const json = transactions.map(({ id: txID, hex }) => ({
    txID,
    raw_data_hex: hex,
    ret: [{ contractRet: 'SUCCESS' }],
  }));
  const shown = hasDetail && json.length > 0 ? { transactions: json } : {};
  return { blockID: id, block_header: { raw_data: header, witness_signature: signature }, ...shown };
}

export function infosJson({ number, time, transactions }: Block): object[] {
  return transactions.map((transaction) => ({
    id: transaction.id,
    blockNumber: number,
    blockTimeStamp: time,
    receipt: { result: 'SUCCESS' },
    log: logsJson(transaction),
  }));
}

/** A block's logs in the form of JSON-RPC. */
export function rpcLogsOf(block: Block): RpcLog[] {
  return block.transactions.flatMap((transaction) =>
    logsJson(transaction).map(({ address, topics, data }) => ({
      blockNumber: `0x${block.number.toString(16)}`,
      blockHash: `0x${block.id}`,
      transactionHash: `0x${transaction.id}`,
      address: `0x${address}`,
      topics: topics.map((topic) => `0x${topic}`),
      data: `0x${data}`,
    })),
  );
}

export type RpcLog = Record<'blockNumber' | 'blockHash' | 'transactionHash' | 'address' | 'data', string> & {
  topics: string[];
};

function logsJson({ logs, events = [] }: Transaction) {
  const word = (hex: string) => hex.padStart(64, '0');
  const transfers = logs.map(({ from, to, amount }) => ({
    address: USDT,
    topics: [TRANSFER_TOPIC, word(from), word(to)],
    data: word(amount.toString(16)),
  }));
  return [...transfers, ...events.map((topic) => ({ address: USDT, topics: [topic], data: '' }))];
}

/** Creates a chain with this many blocks. */
export function chainOf(blocks: number): AttackChain {
  const chain = createAttackChain();
  for (let made = 0; made < blocks; made += 1) chain.mine();
  return chain;
}
