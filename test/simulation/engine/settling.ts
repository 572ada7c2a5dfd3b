import pg from 'pg';
import type { TestDatabase } from '../../support/postgres.ts';

/** How long work may continue before checking whether it waits for a lock. In real time: a statement takes less than a millisecond. */
const PATIENCE_MS = 10;
/** No statement of a simulation takes this long, and neither does closing a connection. Anything longer is a mistake in the simulation. */
const STUCK_MS = 60_000;

/** Tracks the activity in the real database, so that simulated time only moves when there is none. */
export type Settling = {
  /** Reports real activity until the returned function is called. */
  begin(): () => void;
  /**
   * Resolves once everything that can continue has done so: all remaining work waits for a timer, or for a lock that another process holds.
   */
  settle(): Promise<void>;
  /** Whether something waits for a lock. */
  isBlocked(): boolean;
  /** Does what PostgreSQL does to a statement that waited too long for a lock. */
  cancelBlocked(): Promise<void>;
  /** Closes a process's connections. */
  terminate(applicationName: string): Promise<void>;
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  end(): Promise<void>;
};

export async function createSettling(database: TestDatabase): Promise<Settling> {
  const client = new pg.Client(database.ownerString);
  await client.connect();
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other, because a connection does one thing at a time. */
  const query = (sql: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> => {
    const rows = last.then(async () => (await client.query(sql, [...values])).rows as Record<string, unknown>[]);
    last = rows.catch(() => undefined);
    return rows;
  };
  let busy = 0;
  let hasBlocked = false;
  let onEnd: () => void = () => undefined;
  const countBlocked = async () => {
    const [row] = await query(
      `select count(*)::int as blocked from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return Number(row?.['blocked']);
  };
  const nextEnd = (ms: number) =>
    new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), ms);
      onEnd = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  return {
    query,
    begin: () => {
      busy += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        busy -= 1;
        onEnd();
      };
    },
    settle: async () => {
      const startedMs = performance.now();
      for (;;) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        if (busy === 0) {
          hasBlocked = false;
          return;
        }
        if (await nextEnd(hasBlocked ? 1 : PATIENCE_MS)) continue;
        const blocked = await countBlocked();
        hasBlocked = blocked > 0;
        if (hasBlocked && blocked >= busy) return;
        if (performance.now() - startedMs > STUCK_MS)
          throw new Error(`${busy} statements go on for ${STUCK_MS} ms, ${blocked} of them wait for locks`);
      }
    },
    isBlocked: () => hasBlocked,
    cancelBlocked: async () => {
      await query(
        `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
    },
    terminate: async (applicationName) => {
      const startedMs = performance.now();
      // With a timeout argument, PostgreSQL only checks every 100 ms.
      while (performance.now() - startedMs < STUCK_MS) {
        const left = await query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = $1`,
          [applicationName],
        );
        if (left.length === 0) return;
      }
      throw new Error(`the connections of ${applicationName} do not end`);
    },
    end: () => client.end(),
  };
}
