import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { keyPairOf } from '../../src/devnet/keys.ts';
import type { AccountHex } from '../../src/tron/address.ts';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader } from '../../src/tron/block-header.ts';
import { txTrieRoot } from '../../src/tron/merkle.ts';
import { encodeRawTransaction } from '../../src/tron/raw-transaction.ts';
import { signMessage } from '../../src/tron/signature.ts';
import { contractRetNumber, encodeTransaction, txIdOf } from '../../src/tron/transaction.ts';

/** A source of numbers in 0 … 1 that a seed repeats (mulberry32). */
export type Random = () => number;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function hex(random: Random, bytes: number): string {
  return Array.from({ length: bytes * 2 }, () => Math.floor(random() * 16).toString(16)).join('');
}

export type Log = { to: string; amount: bigint };
type Transaction = { id: string; rawDataHex: string; logs: Log[] };
export type Block = {
  number: number;
  id: string;
  parentId: string;
  time: number;
  header: BlockHeaderJson;
  signature: string;
  transactions: Transaction[];
};

/** Makes every block: our own solidity is the head then, and what the node calls irreversible decides. */
export const PRODUCER = keyPairOf(sha256(utf8ToBytes('simulated producer')));

/** A call of a contract that is not USDT and moves it all the same: its logs are all that shows the transfers. */
export function transactionOf(random: Random, logs: Log[]): Transaction {
  const account = () => hex(random, 20) as AccountHex;
  const rawData = encodeRawTransaction({
    refBlockBytes: '0000',
    refBlockHash: '00'.repeat(8),
    expirationMs: 1,
    timestampMs: 1,
    feeLimitSun: 0n,
    memo: '',
    permissionId: 0,
    contract: { kind: 'trigger', owner: account(), contract: account(), data: hex(random, 4), callValueSun: 0n },
  });
  return { id: txIdOf(rawData), rawDataHex: bytesToHex(rawData), logs };
}

function blockAfter(parent: { number: number; id: string }, time: number, transactions: Transaction[]): Block {
  const success = [{ feeSun: 0n, ret: 0, contractRet: contractRetNumber('SUCCESS') ?? 0 }];
  const leaves = transactions.map(({ rawDataHex }) =>
    encodeTransaction({ rawData: hexToBytes(rawDataHex), signatures: [], results: success }),
  );
  const number = parent.number + 1;
  const header = {
    number,
    timestamp: time,
    parentHash: parent.id,
    txTrieRoot: txTrieRoot(leaves),
    witness_address: `41${PRODUCER.account}`,
    version: 34,
  };
  const bytes = encodeBlockHeader(header);
  if (bytes === null) throw new Error('the header of a simulated block cannot be encoded');
  const signature = signMessage(bytes, PRODUCER.privateKey);
  return { number, id: blockIdOf(bytes, number), parentId: parent.id, time, header, signature, transactions };
}

/** A chain that forks anywhere above its solid block, with what waits for a block and the latest time any branch had. */
export type Chain = {
  blocks: Block[];
  waiting: Transaction[];
  solidNumber: number;
  latestTime: number;
  head(): Block;
  mine(stepMs?: number, takesAll?: boolean): void;
  fork(): void;
  advanceSolid(): void;
};

const SLOT_MS = 3000;

export function createChain(random: Random, startTime: number): Chain {
  const below = (count: number) => Math.floor(random() * count);
  const genesis = blockAfter({ number: -1, id: 'ff'.repeat(32) }, startTime, []);
  const chain: Chain = {
    blocks: [genesis],
    waiting: [],
    solidNumber: 0,
    latestTime: startTime,
    head: () => chain.blocks.at(-1) ?? genesis,
    mine(stepMs = SLOT_MS, takesAll = true) {
      const head = chain.head();
      const taken = takesAll ? chain.waiting.length : below(chain.waiting.length + 1);
      const transactions = chain.waiting.splice(0, taken);
      // Another branch has other blocks even where nothing else differs: a slot may be missed.
      const time = head.time + stepMs + (below(1000) * SLOT_MS) / 1_000_000;
      chain.blocks.push(blockAfter(head, Math.floor(time), transactions));
      chain.latestTime = Math.max(chain.latestTime, Math.floor(time));
    },
    // The orphaned transactions enter the new branch, or wait for a later block, or half of them are gone, or all.
    fork() {
      const most = chain.head().number - chain.solidNumber;
      if (most < 1) return;
      const depth = 1 + below(most);
      const orphaned = chain.blocks.splice(-depth).flatMap(({ transactions }) => transactions);
      const fate = random();
      if (fate < 0.4) chain.waiting.unshift(...orphaned);
      else if (fate < 0.7) chain.waiting.unshift(...orphaned.filter(() => random() < 0.5));
      const later = fate < 0.2 ? chain.waiting.splice(0) : [];
      const length = depth + (random() < 0.8 ? 1 : 0);
      for (let i = 0; i < length; i++) chain.mine(SLOT_MS, random() < 0.5);
      chain.waiting.push(...later);
    },
    advanceSolid() {
      chain.solidNumber += below(chain.head().number - chain.solidNumber + 1);
    },
  };
  return chain;
}
