import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import { type AccountHex, accountToAddress, parseAddress, type TronAddress } from '@quittance/tron/address';
import { writeBytes, writeElement, writeInt64 } from '@quittance/tron/protobuf';
import { encodeRawTransaction, type RawTransaction } from '@quittance/tron/raw-transaction';
import { signMessage } from '@quittance/tron/signature';
import { encodeTransaction } from '@quittance/tron/transaction';
import { referenceOf } from './chain/admission.ts';
import { type Ledger, openLedger } from './chain/ledger.ts';
import { createLedgerStorage } from './chain/ledger-storage.ts';
import { type BlockMark, type MineOptions, markOf, mineBlocks, mineUntilSolid } from './chain/mine.ts';
import { type Schedule, withActive, withoutStalled, withReplaced, withRotated, withStalled } from './chain/schedule.ts';
import { accountWord, type Noise, selectorOf, uintWord } from './evm/abi.ts';
import { FAKE_USDT, MULTISEND, NOISE, PAYER, STRANGER, USDT } from './evm/keys.ts';
import { encodeNoiseCall } from './evm/noise.ts';
import { type NodePorts, type NodeServer, startNodeServer } from './node/node-server.ts';
import { readSent } from './wire/hidden-fields.ts';

export interface DevnetOptions extends NodePorts {
  /** The directory of the chain, or null to keep the chain in memory. Only one process may use a directory. */
  readonly dataDir: string | null;
  readonly host?: string;
  /** The time between blocks. With 0, blocks are made only on request. */
  readonly blockMs?: number;
  /** A number from 1 to 27. An existing directory keeps its number of producers. */
  readonly producers?: number;
  readonly now?: () => number;
  /** The time of block 0, which also determines its id. Default: `now()`, rounded to a slot. An existing directory keeps its own. */
  readonly genesisTimestampMs?: number;
  /** Called if a block couldn't be written; the next slot tries again. By default, the error is thrown and not caught. */
  readonly onError?: (error: unknown) => void;
}

/** A current or previous producer, identified by its index. */
export interface WitnessMark {
  readonly index: number;
  readonly address: TronAddress;
  /** The address of the key in its witness permission, which signs its blocks. */
  readonly signerAddress: TronAddress;
  readonly isActive: boolean;
  readonly isStalled: boolean;
}

/** A running network with one node, which has the ports of a `NodeServer`. When a method returns, its effect is complete. */
export interface Devnet extends Pick<NodeServer, 'url' | 'solidityUrl' | 'grpcUrl' | 'grpcSolidityUrl' | 'setFault'> {
  readonly usdtContract: TronAddress;
  readonly fakeUsdtContract: TronAddress;
  readonly multisendContract: TronAddress;
  /** The wallet that initially holds all USDT and fake USDT, and nearly all TRX. */
  readonly payer: { readonly address: TronAddress; readonly privateKey: string };
  /** The time of block 0, which isn't in its header. */
  readonly genesisTimestampMs: number;
  head(): BlockMark;
  solid(): BlockMark;
  pendingCount(): number;
  /**
   * Makes blocks immediately; one by default. If there's a block time, the blocks are ahead of the clock, and the network waits until the
   * clock has caught up.
   */
  mine(count?: number, options?: MineOptions): BlockMark[];
  /** Makes blocks until all transactions that are currently pending or in a block are solid. */
  mineUntilSolid(options?: MineOptions): BlockMark[];
  /**
   * Orphans the last `depth` blocks above the solid one, and replaces them with a branch that is one block longer. With `keepTransactions`
   * (the default), their transactions are included in later blocks, except those that refer to an orphaned block, as on a real network.
   * Otherwise they are dropped. Returns the new branch's blocks.
   */
  fork(options: { readonly depth: number; readonly keepTransactions?: boolean }): BlockMark[];
  /** Returns all current and previous producers, by index. */
  witnesses(): readonly WitnessMark[];
  /** Makes these producers miss their turns from now on. Their slots pass, but no height is skipped. */
  stall(indexes: readonly number[]): void;
  unstall(): void;
  /** Sets the producers, in the order of their turns. Any index below 1,000 can become a producer. A fork doesn't undo this. */
  setProducers(indexes: readonly number[]): void;
  /** Replaces the first `count` producers with new ones, and returns their indexes. */
  replaceProducers(count: number): readonly number[];
  /** Changes a producer's witness permission key, which signs its next block. */
  rotateSigner(index: number): void;
  readonly usdt: OwnerCalls;
  /**
   * Puts data on the chain that JSON omits or that is too large. If the data is in a transaction, which waits for the next block, its id is
   * returned. If the data is in a field of the next block's header, null is returned. The options are for `huge-infos`.
   */
  poison(kind: PoisonKind, options?: PoisonOptions): string | null;
  /**
   * Accepts a signed Transaction (hex) as if a peer had sent it. Unlike for a client's transaction, its Result is kept. Returns its id.
   */
  relay(transaction: string): string;
  /** Starts another node on the same network, with its own faults. */
  addNode(ports?: NodePorts): Promise<NodeServer>;
  stop(): Promise<void>;
}

function rethrow(error: unknown): never {
  throw error;
}

/** The main network's slot. */
const DEFAULT_STEP_MS = 3_000;

/** Starts a local TRON network. After `stop()` it ends within a second and leaves nothing behind except its directory. */
export async function startDevnet(options: DevnetOptions): Promise<Devnet> {
  const { dataDir, host = '127.0.0.1', blockMs = 1_000, producers = 5, now = Date.now } = options;
  const slotMs = blockMs === 0 ? DEFAULT_STEP_MS : blockMs;
  const genesisTimestampMs = options.genesisTimestampMs ?? Math.floor(now() / slotMs) * slotMs;
  const ledger = openLedger(createLedgerStorage({ dataDir, producers, genesisTimestampMs }));
  // Wallets can't refer to block 0, because it has no number in JSON.
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

/** The maximum delay for a timer. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Produces a block in every slot of `blockMs`, counted from genesis. After a suspension it continues in the current slot, which leaves a
 * gap in time but never in height. If the chain is ahead of the clock, it waits. The slots of stalled producers pass without a block. If a
 * block can't be written, for example because the disk is full, the block doesn't exist: `onError` is called, and the next slot tries
 * again.
 */
export function startTicker({
  ledger,
  blockMs,
  now,
  onError,
}: {
  readonly ledger: Ledger;
  readonly blockMs: number;
  readonly now: () => number;
  readonly onError: (error: unknown) => void;
}): { stop(): void } {
  const origin = ledger.view('full').block(0)?.header.timestamp ?? 0;
  const slotAt = (timeMs: number) => origin + Math.floor((timeMs - origin) / blockMs) * blockMs;
  const tick = () => {
    const slot = slotAt(now());
    try {
      const missed = ledger.missedSlots();
      const isDue = missed !== null && slot > ledger.head().header.timestamp + missed * blockMs;
      if (isDue) ledger.produceBlock({ timestampMs: slot });
    } catch (error) {
      onError(error);
    }
    schedule();
  };
  let timer: NodeJS.Timeout;
  const schedule = () => {
    const next = Math.max(slotAt(now()), slotAt(ledger.head().header.timestamp)) + blockMs;
    timer = setTimeout(tick, Math.min(Math.max(next - now(), 1), MAX_TIMER_MS));
  };
  schedule();
  return { stop: () => clearTimeout(timer) };
}

/**
 * The calls that the USDT contract's owner can make. Each call submits a transaction, which waits for the next block, and returns the
 * transaction's id.
 */
export interface OwnerCalls {
  /** Makes transfers revert. */
  pause(): string;
  unpause(): string;
  /**
   * Sets a fee on every transfer, in hundredths of a percent (below 20), with a maximum in whole USDT (below 50). With higher values, the
   * call reverts.
   */
  setParams(fee: { readonly basisPoints: number; readonly maxFeeUsdt: number }): string;
  /** Announces another contract. Unlike the real contract, this one still works on its own afterwards. */
  deprecate(address: string): string;
  /** The address can still receive, but its transfers revert. */
  addBlackList(address: string): string;
  removeBlackList(address: string): string;
  /** Destroys a frozen address's balance without a Transfer event. */
  destroyBlackFunds(address: string): string;
  /** Changes the owner's balance, without a Transfer event. */
  issue(amountMicro: bigint): string;
  redeem(amountMicro: bigint): string;
}

const FEE_LIMIT_SUN = 100_000_000n;
const EXPIRATION_MS = 60 * 60 * 1000;

/** `now` must never return the same value twice, because otherwise equal calls would have the same id. */
export function createOwnerCalls(ledger: Ledger, now: () => number): OwnerCalls {
  const call = (signature: string, ...words: readonly string[]): string => {
    const reference = ledger.view('solid').block(ledger.solidNumber());
    if (reference === null) throw new Error('devnet has no solid block');
    const rawData = encodeRawTransaction({
      ...referenceOf(reference),
      expirationMs: ledger.head().header.timestamp + EXPIRATION_MS,
      timestampMs: now(),
      feeLimitSun: FEE_LIMIT_SUN,
      memo: '',
      permissionId: 0,
      contract: {
        kind: 'trigger',
        owner: PAYER.account,
        contract: USDT,
        data: selectorOf(signature) + words.join(''),
        callValueSun: 0n,
      },
    });
    const signatures = [hexToBytes(signMessage(rawData, PAYER.privateKey))];
    const submitted = ledger.submit({ rawData, signatures, results: [] });
    if (submitted.kind === 'accepted') return submitted.id;
    throw new Error(`devnet refused ${signature}: ${submitted.refusal.message}`);
  };
  return {
    pause: () => call('pause()'),
    unpause: () => call('unpause()'),
    setParams: ({ basisPoints, maxFeeUsdt }) =>
      call('setParams(uint256,uint256)', uintWord(basisPoints), uintWord(maxFeeUsdt)),
    deprecate: (address) => call('deprecate(address)', accountWord(accountOf(address))),
    addBlackList: (address) => call('addBlackList(address)', accountWord(accountOf(address))),
    removeBlackList: (address) => call('removeBlackList(address)', accountWord(accountOf(address))),
    destroyBlackFunds: (address) => call('destroyBlackFunds(address)', accountWord(accountOf(address))),
    issue: (amountMicro) => call('issue(uint256)', uintWord(amountMicro)),
    redeem: (amountMicro) => call('redeem(uint256)', uintWord(amountMicro)),
  };
}

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind === 'ok') return parsed.account;
  throw new TypeError(`${address} is not a TRON address: ${parsed.reason}`);
}

/** The kinds of data that a stranger or a producer can put on the chain so that JSON omits bytes or becomes too large. */
export const POISONS = [
  'unknown-outer-field',
  'unknown-result-field',
  'order-id',
  'result-beyond-2^53',
  'unknown-header-field',
  'huge-infos',
] as const;

export type PoisonKind = (typeof POISONS)[number];

/** For `huge-infos`: how many bytes of JSON, in which shape, and in how many transactions (default: one). */
export type PoisonOptions = Partial<Noise> & { readonly transactions?: number };

/** A field that java-tron doesn't know. It has the same number as the field in block 79072107 on the main network. */
const UNKNOWN_FIELD = writeInt64(1002, 1);

/**
 * The bytes to append to a whole Transaction. A real java-tron has mined all of them: the first from a client, and those in a Result from a
 * peer.
 */
const APPENDED: Readonly<Partial<Record<PoisonKind, Uint8Array>>> = {
  'unknown-outer-field': hexToBytes('3001'),
  'unknown-result-field': writeElement(5, UNKNOWN_FIELD),
  'order-id': writeElement(5, writeBytes(25, Buffer.from('orderid'))),
  'result-beyond-2^53': writeElement(5, writeInt64(15, 2n ** 53n + 1n)),
};

/** This exceeds the 24 MiB that a client may accept for most responses. */
const HUGE_INFOS_BYTES = 26 * 1024 * 1024;

const POISON_FEE_LIMIT_SUN = 15_000_000_000n;

/** Appends the hidden bytes of a kind to a signed transaction, whose id and signature don't change. */
export function poisoned(transaction: Uint8Array, kind: PoisonKind): Uint8Array {
  const appended = APPENDED[kind];
  if (appended === undefined) throw new TypeError(`devnet cannot append ${kind} to a transaction`);
  return concatBytes(transaction, appended);
}

/**
 * Poisons the next block. Adds a pending transaction of the kind (1 sun to a stranger, or calls that create bulk) and returns its id, or
 * the id of the first one if there are several. For `unknown-header-field`, changes the header and returns null. `now` must never return
 * the same value twice.
 */
export function createPoison(ledger: Ledger, now: () => number) {
  const build = (contract: RawTransaction['contract']): Uint8Array => {
    const rawData = encodeRawTransaction({
      ...referenceOf(ledger.view('solid').block(ledger.solidNumber()) ?? ledger.head()),
      expirationMs: ledger.head().header.timestamp + EXPIRATION_MS,
      timestampMs: now(),
      feeLimitSun: contract.kind === 'trigger' ? POISON_FEE_LIMIT_SUN : 0n,
      memo: '',
      permissionId: 0,
      contract,
    });
    const signatures = [hexToBytes(signMessage(rawData, PAYER.privateKey))];
    return encodeTransaction({ rawData, signatures, results: [] });
  };
  return (kind: PoisonKind, options: PoisonOptions = {}): string | null => {
    if (kind === 'unknown-header-field') {
      ledger.hideInNextHeader(bytesToHex(UNKNOWN_FIELD));
      return null;
    }
    const owner = PAYER.account;
    if (kind !== 'huge-infos') {
      return relay(ledger, poisoned(build({ kind: 'transfer', owner, to: STRANGER, amountSun: 1n }), kind));
    }
    const { bytes = HUGE_INFOS_BYTES, shape = 'log', transactions = 1 } = options;
    const data = encodeNoiseCall({ bytes: Math.ceil(bytes / transactions), shape });
    const ids = Array.from({ length: transactions }, () =>
      relay(ledger, build({ kind: 'trigger', owner, contract: NOISE, data, callValueSun: 0n })),
    );
    return ids[0] ?? null;
  };
}

/** Accepts a whole signed Transaction, including its Result, as if a peer had sent it. Returns its id. Throws if it's refused. */
export function relay(ledger: Ledger, transaction: Uint8Array): string {
  const sent = readSent(transaction);
  if (sent === null) throw new TypeError('these bytes are not a Transaction');
  const submitted = ledger.submit(sent);
  if (submitted.kind === 'accepted') return submitted.id;
  throw new Error(`devnet refused a transaction from a peer: ${submitted.refusal.message}`);
}
