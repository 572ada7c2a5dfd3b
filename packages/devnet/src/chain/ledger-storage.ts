import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { FAKE_USDT, PAYER, PENNILESS, producerAccount, USDT } from '../evm/keys.ts';
import { createdKey, type StateChange, trxKey } from '../evm/state.ts';
import { genesisBalances } from '../evm/token.ts';
import { type Block, type BlockRecord, blockOfRecord, recordOf } from './block.ts';
import { type Chain, type ChainStart, createChain } from './chain.ts';
import { firstGenesisBlock, genesisBlock, PAYER_SUN, PENNILESS_SUN } from './genesis.ts';
import { firstSchedule, type Schedule } from './schedule.ts';

/** The records of a chain that follow its start, in order. */
export type LedgerRecord =
  | { readonly kind: 'submitted'; readonly transaction: string }
  | { readonly kind: 'fork'; readonly to: number; readonly keepTransactions: boolean; readonly forget?: string }
  | { readonly kind: 'producers'; readonly schedule: Schedule }
  | { readonly kind: 'block'; readonly block: Block; readonly change: StateChange; readonly position: number };

export interface LedgerStorage {
  open(ledger: {
    readonly pending: () => string[];
    readonly replay: (record: LedgerRecord, chain: Chain) => void;
  }): Chain;
  writeSubmitted(transaction: string): void;
  writeFork(fork: Omit<LedgerRecord & { kind: 'fork' }, 'kind'>): void;
  writeSchedule(schedule: Schedule): void;
  /** Returns the position of the block's line in the log. */
  writeBlock(block: Block, change: StateChange): number;
  /** Takes a snapshot if it's due. */
  maintain(chain: Chain): void;
  close(chain: Chain): void;
}

/** A line of the log. `change` has decimal numbers. */
type LogLine =
  | { readonly t: 'genesis'; readonly producers: number; readonly timestampMs: number; readonly version?: 2 }
  | { readonly t: 'submitted'; readonly transaction: string }
  | { readonly t: 'fork'; readonly to: number; readonly keepTransactions: boolean; readonly forget?: string }
  | { readonly t: 'producers'; readonly schedule: Schedule }
  | ({ readonly t: 'block'; readonly change?: readonly (readonly [string, string])[] } & BlockRecord);

/**
 * After a kill, at most about this many blocks are replayed when opening. With 1,000, opening a chain of 200,000 blocks spent most of its
 * time on replaying.
 */
const SNAPSHOT_EVERY_BLOCKS = 250;

type StorageOptions = {
  readonly dataDir: string | null;
  readonly producers: number;
  readonly genesisTimestampMs: number;
};

/**
 * Stores a ledger in a directory (`chain.log` and its snapshot files), or in memory if `dataDir` is null. The options describe a new
 * network. If the directory already exists, its own options are used.
 */
export function createLedgerStorage(options: StorageOptions): LedgerStorage {
  const { dataDir, genesisTimestampMs } = options;
  if (dataDir !== null) mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const log = dataDir === null ? createMemoryLog() : openFileLog(join(dataDir, 'chain.log'));
  const snapshots = dataDir === null ? null : openSnapshots(dataDir);
  let snapshotNumber = 0;
  let pending: () => string[] = () => [];
  // Each schedule is kept with the position of its line, so that a snapshot contains the schedule for its block. Each snapshot drops the
  // older schedules.
  let schedules: { readonly position: number; readonly schedule: Schedule }[] = [];
  const write = (line: LogLine) => log.append([JSON.stringify(line)]);
  const readLine = (position: number) => JSON.parse(log.read(position)) as LogLine;

  const saveSnapshot = (chain: Chain): void => {
    const number = chain.solidNumber();
    if (snapshots === null || number <= snapshotNumber) return;
    const start = chain.solidStart();
    const logPosition = start.positions[number] ?? 0;
    const current = schedules.findLastIndex(({ position }) => position <= logPosition);
    const schedule = schedules[current]?.schedule ?? chain.schedule();
    schedules = schedules.slice(Math.max(0, current));
    snapshots.save(
      { number, logPosition, pending: pending(), schedule, ...start, positions: [...start.positions] },
      transactionsOf(chain, snapshotNumber + 1, number),
    );
    snapshotNumber = number;
  };

  return {
    open(ledger) {
      if (log.end() === 0) {
        const producers = firstSchedule(options.producers).active.length;
        write({ t: 'genesis', producers, timestampMs: genesisTimestampMs, version: 2 });
      }
      const first = scheduleOfGenesis(readLine(0));
      const readBlock = (position: number) => blockOfLine(readLine(position), position);
      const snapshot = snapshots?.load(log.end()) ?? null;
      const from = snapshot?.logPosition ?? 0;
      const chain = createChain(chainStart(snapshot, readBlock(from), first), readBlock);
      schedules = [{ position: from, schedule: chain.schedule() }];
      snapshotNumber = snapshot?.number ?? 0;
      pending = ledger.pending;
      for (const transaction of snapshot?.pending ?? []) ledger.replay({ kind: 'submitted', transaction }, chain);
      log.replay(from, (text, position) => {
        if (position === from) return;
        const record = recordOfLine(JSON.parse(text) as LogLine, position);
        if (record.kind === 'producers') schedules.push({ position, schedule: record.schedule });
        ledger.replay(record, chain);
      });
      return chain;
    },
    writeSubmitted: (transaction) => void write({ t: 'submitted', transaction }),
    writeFork: (fork) => void write({ t: 'fork', ...fork }),
    writeSchedule(schedule) {
      schedules.push({ position: write({ t: 'producers', schedule }), schedule });
    },
    writeBlock(block, change) {
      const decimals = change.map(([key, value]) => [key, value.toString()] as const);
      return write({ t: 'block', ...recordOf(block), ...(decimals.length > 0 ? { change: decimals } : {}) });
    },
    maintain(chain) {
      if (chain.solidNumber() >= snapshotNumber + SNAPSHOT_EVERY_BLOCKS) saveSnapshot(chain);
    },
    close(chain) {
      saveSnapshot(chain);
      snapshots?.close();
      log.close();
    },
  };
}

/** Returns the transactions from one height to another, each with its height. */
function transactionsOf(chain: Chain, from: number, to: number): [string, number][] {
  const found: [string, number][] = [];
  for (let height = from; height <= to; height += 1) {
    for (const { id } of chain.block(height)?.transactions ?? []) found.push([id, height]);
  }
  return found;
}

function scheduleOfGenesis(line: LogLine): Schedule {
  if (line.t !== 'genesis') throw new Error('devnet log does not begin with its genesis: the directory is damaged');
  return firstSchedule(line.producers);
}

function blockOfLine(line: LogLine, position: number): Block {
  if (line.t === 'genesis') return (line.version === 2 ? genesisBlock : firstGenesisBlock)(line.timestampMs);
  if (line.t === 'block') return blockOfRecord(line);
  throw new Error(`devnet log has no block at ${position}: the directory is damaged`);
}

function chainStart(snapshot: Snapshot | null, block: Block, first: Schedule): ChainStart {
  const bornAt = BigInt(block.header.timestamp);
  const penniless = [
    [createdKey(PENNILESS.account), bornAt],
    [trxKey(PENNILESS.account), PENNILESS_SUN],
  ] as const;
  if (snapshot !== null) {
    // Directories from before this account was introduced get it when their first snapshot is opened.
    const state = [...penniless, ...snapshot.state];
    return { ...snapshot, state, block, schedule: snapshot.schedule ?? first };
  }
  const accounts = [PAYER.account, ...first.active.map(producerAccount)];
  return {
    block,
    positions: [0],
    transactionHeights: new Map(),
    latestByTurn: first.active.map(() => 0),
    producedByTurn: first.active.map(() => 0),
    schedule: first,
    state: [
      ...accounts.map((account) => [createdKey(account), bornAt] as const),
      [trxKey(PAYER.account), PAYER_SUN],
      ...penniless,
      genesisBalances(USDT),
      genesisBalances(FAKE_USDT),
    ],
  };
}

function recordOfLine(line: LogLine, position: number): LedgerRecord {
  switch (line.t) {
    case 'submitted':
      return { kind: 'submitted', transaction: line.transaction };
    case 'fork':
      return { ...line, kind: 'fork' };
    case 'producers':
      return { kind: 'producers', schedule: line.schedule };
    case 'block': {
      const change = (line.change ?? []).map(([key, value]) => [key, BigInt(value)] as const);
      return { kind: 'block', block: blockOfRecord(line), change, position };
    }
    case 'genesis':
      throw new Error(`devnet log has a second genesis at ${position}: the directory is damaged`);
  }
}

/** An append-only log. Each line is identified by its position. */
interface ChainLog {
  /** Appends lines and returns the position of the first one. When this returns, the operating system has received them. */
  append(lines: readonly string[]): number;
  read(position: number): string;
  /** Visits every line from a position onwards. */
  replay(from: number, visit: (line: string, position: number) => void): void;
  end(): number;
  close(): void;
}

const NEWLINE = 0x0a;
const CHUNK_BYTES = 256 * 1024;

/** A full block has the longest line: 2,000 transactions of about 2 kB each. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Opens a log file. Cuts off the last line if it's incomplete because a process was killed while writing it. There's no fsync: a killed
 * process loses nothing, and a power cut may only lose the last blocks of a network that has no value.
 */
function openFileLog(path: string): ChainLog {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  let end = endOfLastLine(file, fstatSync(file).size);
  ftruncateSync(file, end);
  return {
    append(lines) {
      const start = end;
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(file, bytes, written, bytes.length - written, start + written);
      }
      end = start + bytes.length;
      return start;
    },
    read(position) {
      let found: string | null = null;
      scan(file, { from: position, end }, (line) => {
        found = line;
        return false;
      });
      if (found === null) throw new Error(`devnet log ${path} has no line at ${position}: the directory is damaged`);
      return found;
    },
    replay(from, visit) {
      scan(file, { from, end }, (line, position) => {
        visit(line, position);
        return true;
      });
    },
    end: () => end,
    close: () => closeSync(file),
  };
}

/** Like `openFileLog`, but in memory, for a devnet without a directory. Takes about 400 bytes per block. */
function createMemoryLog(): ChainLog {
  const kept: string[] = [];
  return {
    append(lines) {
      kept.push(...lines);
      return kept.length - lines.length;
    },
    read(position) {
      const line = kept[position];
      if (line === undefined) throw new Error(`devnet log has no line ${position}`);
      return line;
    },
    replay(from, visit) {
      for (const [index, line] of kept.entries()) if (index >= from) visit(line, index);
    },
    end: () => kept.length,
    close: () => undefined,
  };
}

/** Reads lines from a position onwards, until `visit` returns false. */
function scan(
  file: number,
  { from, end }: { from: number; end: number },
  visit: (line: string, position: number) => boolean,
): void {
  let [lineStart, offset, carried] = [from, from, Buffer.alloc(0)];
  // A block without transactions has about 400 bytes, so the first step reads a single block with little waste. For a run of blocks, the
  // steps get larger.
  let chunkBytes = 1024;
  while (offset < end) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, end - offset));
    const count = readSync(file, chunk, 0, chunk.length, offset);
    if (count === 0) return;
    offset += count;
    chunkBytes = Math.min(chunkBytes * 4, CHUNK_BYTES);
    carried = Buffer.concat([carried, chunk.subarray(0, count)]);
    for (let at = carried.indexOf(NEWLINE); at >= 0; at = carried.indexOf(NEWLINE)) {
      if (!visit(carried.toString('utf8', 0, at), lineStart)) return;
      lineStart += at + 1;
      carried = carried.subarray(at + 1);
    }
    if (carried.length > MAX_LINE_BYTES)
      throw new Error(`devnet log has a line over ${MAX_LINE_BYTES} bytes at ${lineStart}`);
  }
}

function endOfLastLine(file: number, size: number): number {
  for (let high = size; high > 0; ) {
    const low = Math.max(0, high - CHUNK_BYTES);
    const chunk = Buffer.alloc(high - low);
    readSync(file, chunk, 0, chunk.length, low);
    const at = chunk.lastIndexOf(NEWLINE);
    if (at >= 0) return low + at + 1;
    high = low;
  }
  return 0;
}

/** A solid block with all state that is derived from the chain up to it, so that the chain doesn't have to be replayed from genesis. */
interface Snapshot {
  readonly number: number;
  /** The position in the log after the solid block's line. */
  readonly logPosition: number;
  /** The position of each block's line, by height, up to `number`. */
  readonly positions: number[];
  readonly transactionHeights: Map<string, number>;
  readonly latestByTurn: readonly number[];
  readonly producedByTurn?: readonly number[];
  readonly state: StateChange;
  /** The producers up to the solid block. Older directories, whose producers couldn't change, don't have this. */
  readonly schedule?: Schedule;
  /** The transactions (hex) that were pending at the time of the snapshot. */
  readonly pending: readonly string[];
}

interface Snapshots {
  /** Returns null if there's no snapshot, or if the snapshot is ahead of a log that ends at `logEnd`. */
  load(logEnd: number): Snapshot | null;
  /** `newTransactions` contains the transactions in the blocks after the last snapshot, with their heights. */
  save(
    snapshot: Omit<Snapshot, 'transactionHeights'>,
    newTransactions: readonly (readonly [id: string, number])[],
  ): void;
  close(): void;
}

const POSITION_BYTES = 8;
const TRANSACTION_BYTES = 40;

/**
 * There are three files: `snapshot.json`, which is replaced as a whole, and two indexes with fixed-width entries. Only the number of
 * entries given in `snapshot.json` counts. Solid blocks never change, so entries are only appended. Later entries were written by a process
 * that was killed, and will be overwritten.
 */
function openSnapshots(dataDir: string): Snapshots {
  const path = join(dataDir, 'snapshot.json');
  const blocks = openIndex(join(dataDir, 'blocks.index'));
  const transactions = openIndex(join(dataDir, 'transactions.index'));
  let saved = { blocks: 0, transactions: 0 };
  return {
    load(logEnd) {
      if (!existsSync(path)) return null;
      const file = JSON.parse(readFileSync(path, 'utf8')) as SnapshotFile;
      if (file.logPosition >= logEnd) return null;
      const positionBytes = readIndex(blocks, (file.number + 1) * POSITION_BYTES);
      const transactionBytes = readIndex(transactions, file.transactionCount * TRANSACTION_BYTES);
      if (positionBytes === null || transactionBytes === null) return null;
      saved = { blocks: file.number + 1, transactions: file.transactionCount };
      const transactionHeights = new Map<string, number>();
      for (let at = 0; at < transactionBytes.length; at += TRANSACTION_BYTES) {
        transactionHeights.set(transactionBytes.toString('hex', at, at + 32), transactionBytes.readDoubleLE(at + 32));
      }
      const positions = Array.from({ length: saved.blocks }, (_, height) =>
        positionBytes.readDoubleLE(height * POSITION_BYTES),
      );
      const state = file.state.map(([key, value]) => [key, BigInt(value)] as const);
      return { ...file, positions, transactionHeights, state };
    },
    save({ positions, state, ...rest }, newTransactions) {
      const newPositions = positions.slice(saved.blocks);
      const positionBytes = Buffer.alloc(newPositions.length * POSITION_BYTES);
      for (const [index, position] of newPositions.entries())
        positionBytes.writeDoubleLE(position, index * POSITION_BYTES);
      writeAll(blocks, positionBytes, saved.blocks * POSITION_BYTES);
      const transactionBytes = Buffer.concat(
        newTransactions.map(([id, number]) => {
          const entry = Buffer.alloc(TRANSACTION_BYTES);
          entry.write(id, 0, 'hex');
          entry.writeDoubleLE(number, 32);
          return entry;
        }),
      );
      writeAll(transactions, transactionBytes, saved.transactions * TRANSACTION_BYTES);
      const next = { blocks: positions.length, transactions: saved.transactions + newTransactions.length };
      const file: SnapshotFile = {
        ...rest,
        transactionCount: next.transactions,
        state: state.map(([key, value]) => [key, value.toString()]),
      };
      writeFileSync(`${path}.new`, JSON.stringify(file), { mode: 0o600 });
      renameSync(`${path}.new`, path);
      saved = next;
    },
    close() {
      closeSync(blocks);
      closeSync(transactions);
    },
  };
}

interface SnapshotFile {
  readonly number: number;
  readonly logPosition: number;
  readonly transactionCount: number;
  readonly latestByTurn: readonly number[];
  readonly producedByTurn?: readonly number[];
  readonly schedule?: Schedule;
  readonly state: readonly (readonly [key: string, decimal: string])[];
  readonly pending: readonly string[];
}

function openIndex(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
}

/** Returns the first `length` bytes of an index, or null if the index is shorter. */
function readIndex(file: number, length: number): Buffer | null {
  const bytes = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const count = readSync(file, bytes, read, length - read, read);
    if (count === 0) return null;
    read += count;
  }
  return bytes;
}

function writeAll(file: number, bytes: Buffer, position: number): void {
  for (let written = 0; written < bytes.length; ) {
    written += writeSync(file, bytes, written, bytes.length - written, position + written);
  }
}
