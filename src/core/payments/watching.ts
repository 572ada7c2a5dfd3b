import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { type ChainCursor, checkLease, lockCursor } from '../store/chain/cursor.ts';
import type { Lease } from '../store/chain/leases.ts';
import type { Database, Sql } from '../store/db/database.ts';

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
