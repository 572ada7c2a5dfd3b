import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { StateChange } from '../evm/state.ts';
import type { Schedule } from './schedule.ts';

/** A solid block and everything that follows from the chain up to it, so that opening need not replay from genesis. */
export interface Snapshot {
  readonly number: number;
  /** Where the log continues after the solid block's line. */
  readonly logPosition: number;
  /** The position of each block's line, by height, up to `number`. */
  readonly positions: number[];
  readonly transactionHeights: Map<string, number>;
  readonly latestByTurn: readonly number[];
  readonly producedByTurn?: readonly number[];
  readonly state: StateChange;
  /** The producers up to the solid block; absent in directories that are older than changes of producers. */
  readonly schedule?: Schedule;
  /** Transactions (hex) that waited when the snapshot was taken. */
  readonly pending: readonly string[];
}

export interface Snapshots {
  /** Null when there is none, or when it is ahead of a log that ends at `logEnd`. */
  load(logEnd: number): Snapshot | null;
  /** `newTransactions` are those of the blocks after the last snapshot, with their heights. */
  save(
    snapshot: Omit<Snapshot, 'transactionHeights'>,
    newTransactions: readonly (readonly [id: string, number])[],
  ): void;
  close(): void;
}

const POSITION_BYTES = 8;
const TRANSACTION_BYTES = 40;

/**
 * Three files: `snapshot.json`, replaced as a whole, and two indexes of fixed-width entries of which only as many count as
 * `snapshot.json` says. Solid blocks never change, so entries are only added; what a killed process wrote beyond is written again.
 */
export function openSnapshots(dataDir: string): Snapshots {
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

/** The first bytes of an index, or null when it has fewer. */
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
