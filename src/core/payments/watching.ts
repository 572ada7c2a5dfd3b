import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { type ChainCursor, checkLease, lockCursor } from '../store/chain/cursor.ts';
import type { Lease } from '../store/chain/leases.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';

/** The input for recording a network's chain. `random(n)` returns n random bytes; `publicUrl` becomes part of events. */
export type Recording = {
  db: Database;
  network: Network;
  publicUrl: string;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
};

/** The input that every watcher use case needs. */
export type Watching = Recording & { lease: Lease };

/**
 * Runs `work` in a transaction that holds the cursor's lock and has checked the lease. This way, a watcher that has lost its lease can't
 * write anything, no matter how late it resumes. Throws `LEASE_LOST`.
 */
export function withCursor<Result>(
  { db, network, lease }: Watching,
  work: (tx: Sql, cursor: ChainCursor) => Promise<Result>,
): Promise<Result> {
  return db.transaction(async (tx) => {
    if (!(await checkLease(tx, lease))) {
      throw new AppError('LEASE_LOST', `the lease ${lease.name} with epoch ${lease.epoch} is held by another process`);
    }
    const cursor = await lockCursor(tx, network);
    if (cursor === null) throw new Error(`network ${network} has no cursor`);
    return work(tx, cursor);
  });
}

/**
 * Returns the database of the process that follows a network, for writes that `withCursor` doesn't fence: alarms, states and comparisons.
 * If the process was paused, its own clock shows that another process may have taken over, and the next statement is refused. Throws
 * `LEASE_LOST`.
 */
export function whileLeading(db: Database, network: Network, isLeader: () => boolean): Database {
  const only = (sql: Sql): Sql['run'] => {
    return async (statement, parameters, leftOut) => {
      if (!isLeader()) {
        throw new AppError(
          'LEASE_LOST',
          `this process has stopped following ${network} until it has renewed its lease`,
          {
            retryable: true,
          },
        );
      }
      return sql.run(statement, parameters, leftOut);
    };
  };
  return {
    ...db,
    run: only(db),
    transaction: (work) => db.transaction((tx) => work({ ...tx, run: only(tx) })),
    snapshot: (work) => db.snapshot((tx) => work({ ...tx, run: only(tx) })),
  };
}

/** Throws `CHAIN_CONTRADICTION` unless the blocks follow `parent` and each other without a gap. */
export function assertLinked(
  parent: { number: number; id: string },
  blocks: readonly { number: number; id: string; parentId: string }[],
): void {
  let last = parent;
  for (const block of blocks) {
    if (block.number !== last.number + 1 || block.parentId !== last.id) {
      throw new AppError(
        'CHAIN_CONTRADICTION',
        `block ${block.number} (${block.id}) has parent ${block.parentId}, but block ${last.number} is ${last.id}`,
      );
    }
    last = block;
  }
}

/** Whether the contents of a row made a transaction fail. If so, the other rows can be processed without that row. */
export function isOfRow(error: unknown): boolean {
  if (error instanceof AppError) return /^(ROW_CHANGED|ADDRESS_DAMAGED|ADDRESS_NOT_VOUCHED)$/.test(error.code);
  return isOfStatement(error);
}

/** Writes items together, but undoes only the items that fail. Returns the failed items with their errors. */
type Write = <Item>(
  tx: Sql,
  items: readonly Item[],
  write: (items: readonly Item[]) => Promise<void>,
) => Promise<{ item: Item; error: unknown }[]>;

const together: Write = async (_tx, items, write) => {
  await write(items);
  return [];
};

/** Retries in halves, down to single items, so that a few failures among thousands of items take only a few dozen attempts. */
const apart: Write = async (tx, items, write) => {
  if (items.length === 0) return [];
  try {
    await tx.script('savepoint apart');
    await write(items);
    // Checks constraints now that would otherwise be checked at commit time.
    await tx.script('set constraints all immediate; set constraints all deferred; release savepoint apart');
    return [];
  } catch (error) {
    if (!isOfRow(error)) throw error;
    await tx.script('rollback to savepoint apart; release savepoint apart');
    const [item] = items;
    if (item !== undefined && items.length === 1) return [{ item, error }];
    const middle = Math.ceil(items.length / 2);
    const first = await apart(tx, items.slice(0, middle), write);
    return [...first, ...(await apart(tx, items.slice(middle), write))];
  }
};

/** Like `withCursor`, but if a row makes the transaction fail, repeats it so that only that row fails. */
export async function withCursorApart<Result>(
  watching: Watching,
  work: (tx: Sql, cursor: ChainCursor, write: Write) => Promise<Result>,
): Promise<Result> {
  try {
    return await withCursor(watching, (tx, cursor) => work(tx, cursor, together));
  } catch (error) {
    if (!isOfRow(error)) throw error;
    return withCursor(watching, (tx, cursor) => work(tx, cursor, apart));
  }
}
