import { AppError } from '../domain/errors.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../runtime/loop.ts';
import { endAlarm, tellAlarm } from '../store/chain/alarms.ts';
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

/**
 * The input for background work alongside a watcher. `isLeader` returns whether this process follows the network; only one process does at
 * a time.
 */
export type Leading = {
  db: Database;
  network: Network;
  now(): UnixMs;
  log: Logger;
  loops?: LoopHealth;
  isLeader(): boolean;
};

const TICK_MS = 1000;
const MAX_PAUSE_MS = 60_000;

/** These options say how work is repeated. After failures, the pause grows up to `maxPauseMs`. */
type Turns = { name: string; pauseMs?: number; maxPauseMs?: number; onFollower?: () => void };

/**
 * Repeats `work` every `pauseMs` while this process follows the network. While another process does, calls `onFollower` every second
 * instead. Runs until it's stopped.
 */
export function loopWhileLeading(
  { network, log, loops, isLeader }: Omit<Leading, 'db'>,
  { name, pauseMs = TICK_MS, maxPauseMs = MAX_PAUSE_MS, onFollower }: Turns,
  work: (shouldEnd: () => boolean) => Promise<void>,
): Loop {
  return startLoop({
    name: `${name} of ${network}`,
    log,
    maxPauseMs,
    health: loops,
    run: async (isStopping) => {
      if (!isLeader()) {
        onFollower?.();
        return TICK_MS;
      }
      await work(() => isStopping() || !isLeader());
      return pauseMs;
    },
  });
}

/** If a check keeps failing or waiting for this many ticks, an alarm is raised. */
const STALL_TICK_MS = 10_000;
const STALL_TICKS = 6;

/**
 * Like `loopWhileLeading`, for watches that Quittance's guarantees depend on. If no check is completed for a minute, raises the alarm
 * `watch-stalled`. A long check must call `progress` after each part. Time is counted in this process's ticks, so time during which the
 * process is suspended doesn't count.
 */
export function guardWhileLeading(
  options: Leading,
  how: Turns & { stallTickMs?: number },
  work: (shouldEnd: () => boolean, progress: () => void) => Promise<void>,
): Loop {
  const { network, log, isLeader } = options;
  const { name, stallTickMs = STALL_TICK_MS } = how;
  const about = ['watch-stalled', name] as const;
  let ticks = 0;
  // A previous process's alarm may still be open.
  let mayBeOpen = true;
  const progress = () => {
    ticks = 0;
  };
  // This loop has its own alarm.
  const { loops: _own, ...guarded } = options;
  const loop = loopWhileLeading(guarded, how, async (shouldEnd) => {
    await work(shouldEnd, progress);
    progress();
    if (!mayBeOpen) return;
    mayBeOpen = false;
    await endAlarm(options, about[0], network, name).catch((error: unknown) => {
      mayBeOpen = true;
      throw error;
    });
  });
  const clock = startLoop({
    name: `time of ${name} of ${network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async () => {
      ticks = isLeader() ? ticks + 1 : 0;
      if (ticks > STALL_TICKS) {
        const detail = `the check "${name}" has not finished for a minute, so problems may go unnoticed: see the log for the cause. An invalid row that was written directly to the database may be the cause. See "watch-stalled" in docs/reference/alarms.md`;
        // The check may finish while the alarm is being written, and must then end it the next time.
        await tellAlarm(options, about[0], { network, subject: name, detail }).finally(() => {
          mayBeOpen = true;
        });
      }
      return stallTickMs;
    },
  });
  return { stop: async () => void (await Promise.all([loop.stop(), clock.stop()])) };
}

/** Runs every step, even if an earlier one has failed, and then throws the first failure. */
export async function takeEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
