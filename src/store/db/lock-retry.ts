import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../domain/errors.ts';
import type { Database, Session, Sql } from './database.ts';
import { answerOf, rowsOf } from './rows-of.ts';
import type { Row } from './statement.ts';

/** Serialises migrations of processes that start together. Any constant will do; this is "quittan" in hexadecimal. */
export const UPGRADE_LOCK = 0x71756974;

/** So long may one transaction of an upgrade wait for locks in all. Whoever comes after it in the line of a table waits as long. */
const LOCK_WAIT_MS = 1000;
const LOOK_MS = 200;
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 15_000;

/**
 * Runs one transaction of an upgrade, and again after a pause whenever others hold what it has to lock. `outside a transaction`: what
 * runs locks nobody out, so it may wait.
 */
export type LockRetry = (work: (tx: Sql) => Promise<unknown>, kind?: 'outside a transaction') => Promise<void>;

const blocker = { pid: 'int4', user: 'text?', application: 'text?', state: 'text?', seconds: 'int4?' } as const;

/** The columns of `blocker`, of a session `a` of pg_stat_activity. That has no state and time of another user's for most users. */
const BLOCKER = `b.pid, a.usename::text as user, a.application_name as application, a.state,
  extract(epoch from clock_timestamp() - a.xact_start)::int4 as seconds`;

export const findPid = answerOf(
  'migrate-pid',
  { pid: 'int4' },
  'select pg_backend_pid() as pid',
  () => [],
  ([row]) => row?.pid ?? 0,
);

const findBlockers = rowsOf(
  'migrate-blockers',
  blocker,
  `select ${BLOCKER} from (select distinct unnest(pg_blocking_pids($1)) as pid) b left join pg_stat_activity a using (pid)`,
  (pid: number) => [pid],
);

const cancel = answerOf(
  'migrate-cancel',
  { isSent: 'bool' },
  'select pg_cancel_backend($1::int4) as is_sent',
  (pid: number) => [pid],
  () => undefined,
);

/** `patienceMs`: how long each transaction is tried again. `pid` is the process of the session. */
export function createLockRetry(
  db: Database,
  session: Session,
  {
    pid,
    patienceMs,
    onBlocked,
  }: { pid: number; patienceMs: number; onBlocked?: (blockers: string, pauseMs: number) => void },
): LockRetry {
  return async (work, kind) => {
    const isOutside = kind !== undefined;
    let waitedMs = 0;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      await session.script(`set lock_timeout = ${isOutside ? patienceMs : LOCK_WAIT_MS}`);
      const watch = watchBlockers(db, pid, isOutside ? Number.POSITIVE_INFINITY : LOCK_WAIT_MS);
      try {
        await (isOutside ? work(session) : session.transaction(work)).finally(watch.end);
        return;
      } catch (error) {
        if (!watch.isBlock(error)) throw error;
        waitedMs += pauseMs + (isOutside ? patienceMs : LOCK_WAIT_MS);
        if (waitedMs > patienceMs)
          throw blocked('other sessions hold locks on tables that it has to change', watch.found());
        onBlocked?.(describeBlockers(watch.found()), pauseMs);
        await delay(pauseMs);
      }
    }
  };
}

/** The SQLSTATEs of a lock that is not to be had in time, and of the one of a deadlock that has to give way. */
const BLOCKED = ['55P03', '40P01'];
const CANCELLED = '57014';

/**
 * Notes who keeps a session waiting, and cancels its statement when all its waiting together was too long. The pool lends the connection: the
 * session itself waits.
 */
function watchBlockers(db: Database, pid: number, mostMs: number) {
  let found: Row<typeof blocker>[] = [];
  let isOver = false;
  let isCancelled = false;
  const look = async () => {
    for (let blockedMs = 0; ; ) {
      await delay(LOOK_MS);
      if (isOver) return;
      const now = await findBlockers(db, pid).catch(() => []);
      if (now.length === 0 || isOver) continue;
      found = now;
      blockedMs += LOOK_MS;
      if (blockedMs < mostMs) continue;
      isCancelled = true;
      await cancel(db, pid).catch(() => undefined);
      return;
    }
  };
  const looking = look();
  return {
    found: () => found,
    isBlock: (error: unknown) => {
      const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
      const is = (one: string) => code === one || cause?.code === one;
      return BLOCKED.some(is) || (isCancelled && is(CANCELLED));
    },
    end: async () => {
      isOver = true;
      await looking;
    },
  };
}

function blocked(why: string, blockers: readonly Row<typeof blocker>[]): AppError {
  const pids = blockers.map(({ pid }) => pid);
  const end = pids.map((pid) => `select pg_terminate_backend(${pid})`).join('; ');
  return new AppError(
    'MIGRATION_BLOCKED',
    `the upgrade of the database gave up, because ${why}: ${describeBlockers(blockers)}. Invoices are created and read as before. Wait until that session ends, then start again. To end it, as its user or a superuser: ${end || 'select pg_terminate_backend(…)'}`,
  );
}

function describeBlockers(blockers: readonly Row<typeof blocker>[]): string {
  const named = blockers.map(({ pid, user, application, state, seconds }) => {
    if (pid === 0) return 'a prepared transaction (see pg_prepared_xacts)';
    const since = seconds === null ? '' : `, in a transaction for ${describeSeconds(seconds)}`;
    return `pid ${pid} (user ${user ?? 'unknown'}, application "${application ?? ''}"${state === null ? '' : `, ${state}`}${since})`;
  });
  return named.length === 0 ? 'a session that ended since (see pg_stat_activity)' : named.join('; ');
}

function describeSeconds(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

/**
 * Waits until no other process upgrades, and keeps all others from it until the connection ends. It asks again and again: whoever waits in
 * PostgreSQL has a snapshot, for whose end a concurrent building of an index waits in turn.
 */
export async function takeTurn(session: Sql, patienceMs: number): Promise<void> {
  const begun = performance.now();
  while (!(await tryLock(session))) {
    if (performance.now() - begun > patienceMs) {
      throw blocked('another process upgrades this database', await findHolders(session));
    }
    await delay(TURN_POLL_MS);
  }
}

const TURN_POLL_MS = 100;

const tryLock = answerOf(
  'migrate-turn',
  { isOurs: 'bool' },
  `select pg_try_advisory_lock(${UPGRADE_LOCK}) as is_ours`,
  () => [],
  ([row]) => row?.isOurs === true,
);

const findHolders = rowsOf(
  'migrate-turn-holders',
  blocker,
  `select ${BLOCKER} from (
     select pid from pg_locks where locktype = 'advisory' and granted and classid = 0 and objid = ${UPGRADE_LOCK}
       and database = (select oid from pg_database where datname = current_database())) b
   left join pg_stat_activity a using (pid)`,
  () => [],
);
