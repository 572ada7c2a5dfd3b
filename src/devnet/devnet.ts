import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { accountToAddress, type TronAddress } from '../tron/address.ts';
import { type Ledger, openLedger } from './chain/ledger.ts';
import { createLedgerStorage } from './chain/ledger-storage.ts';
import { type BlockMark, type MineOptions, markOf, mineBlocks, mineUntilSolid } from './chain/mine.ts';
import { createOwnerCalls, type OwnerCalls } from './chain/owner-calls.ts';
import { createPoison, type PoisonKind, type PoisonOptions, relay } from './chain/poison.ts';
import { type Schedule, withActive, withoutStalled, withReplaced, withRotated, withStalled } from './chain/schedule.ts';
import { startTicker } from './chain/ticker.ts';
import { FAKE_USDT, MULTISEND, PAYER, USDT } from './evm/keys.ts';
import { type NodePorts, type NodeServer, startNodeServer } from './node/node-server.ts';

export interface DevnetOptions extends NodePorts {
  /** Where the chain is kept; null keeps it in memory. Only one process may use a directory. */
  readonly dataDir: string | null;
  readonly host?: string;
  /** Time between blocks; 0 makes blocks only when told to. */
  readonly blockMs?: number;
  /** 1 to 27. A directory keeps the number it was made with. */
  readonly producers?: number;
  readonly now?: () => number;
  /** The time of block 0, which also decides its id; `now()` on the slot grid when absent. A directory keeps its own. */
  readonly genesisTimestampMs?: number;
  /** Is told of a block that could not be written; the next slot tries again. By default, the error is thrown uncaught. */
  readonly onError?: (error: unknown) => void;
}

/** A producer, present or past. Its index names it. */
export interface WitnessMark {
  readonly index: number;
  readonly address: TronAddress;
  /** The address of its witness permission's key, which signs its blocks. */
  readonly signerAddress: TronAddress;
  readonly isActive: boolean;
  readonly isStalled: boolean;
}

/** A running network with one node, at the ports that a `NodeServer` has. Every method takes effect before it returns. */
export interface Devnet extends Pick<NodeServer, 'url' | 'solidityUrl' | 'grpcUrl' | 'grpcSolidityUrl' | 'setFault'> {
  readonly usdtContract: TronAddress;
  readonly fakeUsdtContract: TronAddress;
  readonly multisendContract: TronAddress;
  /** Holds all USDT and fake USDT at first, and nearly all TRX. */
  readonly payer: { readonly address: TronAddress; readonly privateKey: string };
  /** The time of block 0, which its header does not show. */
  readonly genesisTimestampMs: number;
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
  /** Every producer there is or was, by index. */
  witnesses(): readonly WitnessMark[];
  /** These producers miss their turns from now on: their slots pass, but no height is left out. */
  stall(indexes: readonly number[]): void;
  /** Lets all producers make blocks again. */
  unstall(): void;
  /** Makes these the producers, in the order of their turns. Any index below 1,000 can become one; a fork does not undo it. */
  setProducers(indexes: readonly number[]): void;
  /** Gives the turns of the first `count` producers to as many new ones, and returns their indexes. */
  replaceProducers(count: number): readonly number[];
  /** Changes the key of a producer's witness permission; it signs its next block with the new one. */
  rotateSigner(index: number): void;
  /** The calls of the USDT contract's owner. */
  readonly usdt: OwnerCalls;
  /**
   * Puts something on the chain that JSON hides or that is too much: a transaction that waits for the next block, whose id is
   * returned, or a field in the next block's header, and null. The options are for `huge-infos`.
   */
  poison(kind: PoisonKind, options?: PoisonOptions): string | null;
  /** Takes a signed Transaction (hex) as a peer brings it: unlike from a client, its Result is kept. Returns its id. */
  relay(transaction: string): string;
  /** Starts another node of the same network, with faults of its own. */
  addNode(ports?: NodePorts): Promise<NodeServer>;
  stop(): Promise<void>;
}

function rethrow(error: unknown): never {
  throw error;
}

/** The main network's slot. */
const DEFAULT_STEP_MS = 3_000;

/** Starts a local TRON network. It stops with the promise of `stop()`, within a second, and leaves nothing but its directory. */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { dataDir, host = '127.0.0.1', blockMs = 1_000, producers = 5, now = Date.now } = options;
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
  const addNode = async (ports: NodePorts, isPrimary: boolean): Promise<NodeServer> => {
    const control = isPrimary ? { slotMs } : null;
    const node = await startNodeServer({ ledger, now: distinctNow, host, ports, control });
    nodes.push(node);
    return node;
  };
  const first = await addNode(options, true).catch((error: unknown) => {
    ledger.close();
    throw error;
  });
  let stopping: Promise<void> | null = null;
  const ticker = blockMs === 0 ? null : startTicker({ ledger, blockMs, now, onError: options.onError ?? rethrow });
  return {
    url: first.url,
    solidityUrl: first.solidityUrl,
    grpcUrl: first.grpcUrl,
    grpcSolidityUrl: first.grpcSolidityUrl,
    usdtContract: accountToAddress(USDT),
    fakeUsdtContract: accountToAddress(FAKE_USDT),
    multisendContract: accountToAddress(MULTISEND),
    payer: { address: accountToAddress(PAYER.account), privateKey: bytesToHex(PAYER.privateKey) },
    genesisTimestampMs: markOf(ledger, 0).timestampMs,
    head: () => markOf(ledger, ledger.head().header.number),
    solid: () => markOf(ledger, ledger.solidNumber()),
    pendingCount: ledger.pendingCount,
    mine: (count = 1, mineOptions = {}) => mineBlocks(ledger, count, slotMs, mineOptions),
    mineUntilSolid: (mineOptions = {}) => mineUntilSolid(ledger, slotMs, mineOptions),
    fork: ({ depth, keepTransactions = true }) =>
      ledger.fork({ depth, keepTransactions, stepMs: slotMs }).map(({ header }) => markOf(ledger, header.number)),
    ...producerControls(ledger),
    usdt: createOwnerCalls(ledger, distinctNow),
    poison: createPoison(ledger, distinctNow),
    relay: (transaction) => relay(ledger, hexToBytes(transaction)),
    setFault: first.setFault,
    addNode: (ports = {}) => addNode({ separatePorts: options.separatePorts ?? false, ...ports }, false),
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

function producerControls(ledger: Ledger) {
  const change = (next: Schedule) => ledger.setSchedule(next);
  return {
    witnesses: () =>
      ledger.witnesses().map(({ account, signer, ...rest }) => ({
        ...rest,
        address: accountToAddress(account),
        signerAddress: accountToAddress(signer.account),
      })),
    stall: (indexes: readonly number[]) => change(withStalled(ledger.schedule(), indexes)),
    unstall: () => change(withoutStalled(ledger.schedule())),
    setProducers: (indexes: readonly number[]) => change(withActive(ledger.schedule(), indexes)),
    replaceProducers(count: number) {
      change(withReplaced(ledger.schedule(), count));
      return ledger.schedule().active.slice(0, count);
    },
    rotateSigner: (index: number) => change(withRotated(ledger.schedule(), index)),
  };
}
