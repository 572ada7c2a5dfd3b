import { bytesToHex } from '@noble/hashes/utils.js';
import { accountToAddress, type TronAddress } from '../tron/address.ts';
import type { Fault } from './faults.ts';
import { FAKE_USDT, MULTISEND, PAYER, USDT } from './keys.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { createLedgerStorage } from './ledger-storage.ts';
import { type NodeServer, startNodeServer } from './node-server.ts';
import { startTicker } from './ticker.ts';

export interface DevnetOptions {
  /** Where the chain is kept; null keeps it in memory. Only one process may use a directory. */
  readonly dataDir: string | null;
  readonly host?: string;
  /** 0 takes a free port. */
  readonly port?: number;
  /** Time between blocks; 0 makes blocks only when told to. */
  readonly blockMs?: number;
  /** 1 to 27. A directory keeps the number it was made with. */
  readonly producers?: number;
  readonly now?: () => number;
  /** The time of block 0, which also decides its id; `now()` on the slot grid when absent. A directory keeps its own. */
  readonly genesisTimestampMs?: number;
  /** Hears of a block that could not be written; the next slot tries again. By default it is thrown where nobody catches it. */
  readonly onError?: (error: unknown) => void;
}

interface MineOptions {
  /** The time of the first block; must be after the head's. One step after the head when absent. */
  readonly timestampMs?: number;
  /** Between blocks; the block time, or 3,000 when that is 0. */
  readonly stepMs?: number;
}

/** A block by its height, id and time. */
interface BlockMark {
  readonly number: number;
  readonly id: string;
  readonly timestampMs: number;
}

/** A running network with one node at `url`. Every method takes effect before it returns. */
export interface Devnet {
  readonly url: string;
  readonly usdtContract: TronAddress;
  readonly fakeUsdtContract: TronAddress;
  readonly multisendContract: TronAddress;
  /** Holds all TRX, USDT and fake USDT at first. */
  readonly payer: { readonly address: TronAddress; readonly privateKey: string };
  head(): BlockMark;
  solid(): BlockMark;
  /** Transactions that wait for a block. */
  pendingCount(): number;
  /** Makes blocks, by default one, at once; with a block time they run ahead of the clock, and the network waits for it. */
  mine(count?: number, options?: MineOptions): BlockMark[];
  /** Makes blocks until everything that waits or stands in a block now is solid. */
  mineUntilSolid(options?: MineOptions): BlockMark[];
  /**
   * Orphans the last `depth` blocks above the solid one; a branch one longer replaces them. With `keepTransactions` (the
   * default) their transactions enter later blocks, except those that refer to an orphaned block, as on a real network;
   * else they are gone. Returns the blocks of the new branch.
   */
  fork(options: { readonly depth: number; readonly keepTransactions?: boolean }): BlockMark[];
  /** Makes the node at `url` sick in these ways; without arguments it is healthy again. */
  setFault(...faults: readonly Fault[]): void;
  /** Starts another node of the same network, with faults of its own. */
  addNode(options?: { readonly port?: number }): Promise<NodeServer>;
  stop(): Promise<void>;
}

function rethrow(error: unknown): never {
  throw error;
}

/** The main network's slot. */
const DEFAULT_STEP_MS = 3_000;

/** More in one call is a mistake. It takes about a minute. */
const MAX_MINED = 1_000_000;

/** Starts a local TRON network. It stops with the promise of `stop()`, within a second, and leaves nothing but its directory. */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { dataDir, host = '127.0.0.1', port = 0, blockMs = 1_000, producers = 5, now = Date.now } = options;
  const slotMs = blockMs === 0 ? DEFAULT_STEP_MS : blockMs;
  const genesisTimestampMs = options.genesisTimestampMs ?? Math.floor(now() / slotMs) * slotMs;
  const ledger = openLedger(createLedgerStorage({ dataDir, producers, genesisTimestampMs }));
  // A wallet cannot refer to block 0: it has no number in JSON.
  if (ledger.head().header.number === 0) mineBlocks(ledger, 1, slotMs, {});
  const nodes: NodeServer[] = [];
  let lastMs = 0;
  const distinctNow = () => {
    lastMs = Math.max(now(), lastMs + 1);
    return lastMs;
  };
  const addNode = async (nodePort: number): Promise<NodeServer> => {
    const node = await startNodeServer({ ledger, now: distinctNow, host, port: nodePort });
    nodes.push(node);
    return node;
  };
  const first = await addNode(port).catch((error: unknown) => {
    ledger.close();
    throw error;
  });
  let stopping: Promise<void> | null = null;
  const ticker = blockMs === 0 ? null : startTicker({ ledger, blockMs, now, onError: options.onError ?? rethrow });
  return {
    url: first.url,
    usdtContract: accountToAddress(USDT),
    fakeUsdtContract: accountToAddress(FAKE_USDT),
    multisendContract: accountToAddress(MULTISEND),
    payer: { address: accountToAddress(PAYER.account), privateKey: bytesToHex(PAYER.privateKey) },
    head: () => markOf(ledger, ledger.head().header.number),
    solid: () => markOf(ledger, ledger.solidNumber()),
    pendingCount: ledger.pendingCount,
    mine: (count = 1, mineOptions = {}) => mineBlocks(ledger, count, slotMs, mineOptions),
    mineUntilSolid: (mineOptions = {}) => mineUntilSolid(ledger, slotMs, mineOptions),
    fork: ({ depth, keepTransactions = true }) =>
      ledger.fork({ depth, keepTransactions, stepMs: slotMs }).map(({ header }) => markOf(ledger, header.number)),
    setFault: first.setFault,
    addNode: ({ port: nodePort = 0 } = {}) => addNode(nodePort),
    stop() {
      stopping ??= (async () => {
        ticker?.stop();
        await Promise.all(nodes.map((node) => node.stop()));
        ledger.close();
      })();
      return stopping;
    },
  };
}

function mineBlocks(
  ledger: Ledger,
  count: number,
  slotMs: number,
  { timestampMs, stepMs = slotMs }: MineOptions,
): BlockMark[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_MINED) {
    throw new RangeError(`mine makes 1 to ${MAX_MINED} blocks at once, not ${count}`);
  }
  const first = timestampMs ?? ledger.head().header.timestamp + stepMs;
  return Array.from({ length: count }, (_, index) => {
    const { header } = ledger.produceBlock({ timestampMs: first + index * stepMs });
    return markOf(ledger, header.number);
  });
}

function mineUntilSolid(ledger: Ledger, slotMs: number, options: MineOptions): BlockMark[] {
  const { timestampMs: _first, ...following } = options;
  const mined: BlockMark[] = [];
  // A block holds a bounded number of transactions; each round takes at least one, so this ends.
  while (ledger.pendingCount() > 0) {
    mined.push(...mineBlocks(ledger, 1, slotMs, mined.length === 0 ? options : following));
  }
  const target = ledger.head().header.number;
  // Forks may have made producers miss their turns: after two rounds each one has built on the target.
  for (let round = 0; ledger.solidNumber() < target; round += 1) {
    if (round > 2 * ledger.producers.length) throw new Error(`devnet block ${target} does not become solid`);
    mined.push(...mineBlocks(ledger, 1, slotMs, mined.length === 0 ? options : following));
  }
  return mined;
}

function markOf(ledger: Ledger, number: number): BlockMark {
  const block = ledger.view('full').block(number);
  if (block === null) throw new Error(`devnet has no block ${number}`);
  return { number, id: block.id, timestampMs: block.header.timestamp };
}
