import type { AlarmKind } from '../domain/alarm-kinds.ts';
import { AppError, isDatabaseUnavailable, shortageBehind } from '../domain/errors.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../runtime/loop.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { raiseAlarm, resolveAlarms, resolveUnseenAlarms } from '../store/chain/alarms.ts';
import type { Database } from '../store/db/database.ts';
import { answerOf, rowsOf } from '../store/db/rows-of.ts';
import { count, maybeText } from '../store/db/statement.ts';
import { describeUnwatched, findWatchedNetworks, UNWATCHED_MS } from './watched-networks.ts';

/** Problems that a process detects in its environment. Each of them also raises an alarm. */
const TROUBLE_KINDS = [
  'database-full',
  'network-unwatched',
  'clock-wrong',
  'watch-stalled',
] as const satisfies readonly AlarmKind[];
type TroubleKind = (typeof TROUBLE_KINDS)[number];

/**
 * `network` is `null` if the problem concerns all networks. `detail` is public, so it must not contain a host name. `isReady` says whether
 * invoices can still be created.
 */
type Trouble = {
  kind: TroubleKind;
  network: Network | null;
  subject: string;
  detail: string;
  isReady: boolean;
};

/** The problems that this process currently knows about. `GET /readyz`, the alarms and the log all use this list. */
export type HealthProblems = {
  /** Replaces the known problems of one kind. Logs new ones and resolved ones. */
  set(kind: TroubleKind, found: readonly Trouble[]): void;
  list(): readonly Trouble[];
};

function keyOf({ kind, network, subject }: Trouble): string {
  return `${kind} ${network ?? ''} ${subject}`;
}

export function createHealthProblems({ log }: { log: Logger }): HealthProblems {
  const known = new Map<TroubleKind, readonly Trouble[]>();
  return {
    set: (kind, found) => {
      const before = known.get(kind) ?? [];
      known.set(kind, found);
      for (const { network, subject } of without(before, found)) {
        log.info({ alarm: kind, network: network ?? undefined, subject }, 'the alarm is resolved');
      }
      for (const { network, subject, detail } of without(found, before)) {
        log.error({ alarm: kind, network: network ?? undefined, subject }, detail);
      }
    },
    list: () => [...known.values()].flat(),
  };
}

function without(some: readonly Trouble[], others: readonly Trouble[]): Trouble[] {
  const keys = new Set(others.map(keyOf));
  return some.filter((each) => !keys.has(keyOf(each)));
}

const TICK_MS = 1000;
const MAX_PAUSE_MS = 60_000;
/** As long as a problem lasts, its alarm is raised again at this interval. If an alarm is older, the process that raised it is gone. */
const REPEAT_MS = 60_000;

type Deps = {
  db: Database;
  networks: readonly Network[];
  log: Logger;
  metrics: Pick<Metrics, 'troubles'>;
  troubles: HealthProblems;
  /** The checks. Each one decides how often to do its work. */
  looks: readonly ((db: Database) => Promise<void>)[];
};

/** Runs the checks every second, and raises alarms for the problems found. Runs until it's stopped. */
export function startHealthWatch(deps: Deps): Loop {
  const { log, looks, db } = deps;
  const alarms = createTroubleAlarms(deps);
  return startLoop({
    name: 'watch of troubles',
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      const failures: unknown[] = [];
      const hasFailed = (error: unknown) => failures.push(error) > 0;
      // If the database is unavailable, only one check per round waits for it, so that a stop isn't delayed for long. After any other
      // failure, the remaining checks still run.
      for (const work of [...looks, alarms.keep]) {
        if (isStopping() || !(await unlessAway(work(db)).catch(hasFailed))) break;
      }
      if (failures.length > 0) throw failures[0];
      return TICK_MS;
    },
  });
}

/**
 * Returns whether the work was done. No alarm can be written while the database is unavailable or full. But the list, the log and the
 * metric already report the problem, and the next round tries again.
 */
async function unlessAway(work: Promise<void>): Promise<boolean> {
  return work.then(
    () => true,
    (error: unknown) => {
      if (!isDatabaseUnavailable(error)) throw error;
      // If the database is only short of some resource, it still responds, and other checks may succeed.
      return shortageBehind(error) !== null;
    },
  );
}

type Raised = { network: Network; trouble: Trouble; atMs: number };

function createTroubleAlarms({ db, networks, metrics, troubles }: Deps): { keep(): Promise<void> } {
  const raised = new Map<string, Raised>();
  let closedMs = Number.NEGATIVE_INFINITY;
  const keep = async () => {
    const nowMs = performance.now();
    const wanted = new Map<string, Omit<Raised, 'atMs'>>();
    for (const trouble of troubles.list()) {
      for (const network of trouble.network === null ? networks : [trouble.network]) {
        wanted.set(`${network} ${keyOf(trouble)}`, { network, trouble });
      }
    }
    for (const kind of TROUBLE_KINDS) {
      metrics.troubles.set({ kind }, troubles.list().filter((trouble) => trouble.kind === kind).length);
    }
    for (const [key, { network, trouble }] of wanted) {
      const before = raised.get(key);
      if (before !== undefined && nowMs - before.atMs < REPEAT_MS && before.trouble.detail === trouble.detail) continue;
      await raiseAlarm(db, network, trouble);
      raised.set(key, { network, trouble, atMs: nowMs });
    }
    for (const [key, { network, trouble }] of raised) {
      if (wanted.has(key)) continue;
      await resolveAlarms(db, network, trouble.kind, trouble.subject);
      raised.delete(key);
    }
    if (nowMs - closedMs < REPEAT_MS) return;
    await resolveUnseenAlarms(db, TROUBLE_KINDS);
    closedMs = nowMs;
  };
  return { keep };
}

const LOOK_MS = 15_000;

type FindUnwatchedDeps = {
  troubles: HealthProblems;
  /** The networks in this process's configuration. */
  networks: readonly Network[];
  log: Logger;
  now(): number;
};

/**
 * Finds networks that have active addresses but no watcher. Every process checks this, because there may not be any watcher process. If a
 * network isn't in this process's configuration, a line is logged at the start.
 */
export function createUnwatchedLook({ troubles, networks, log, now }: FindUnwatchedDeps) {
  const startMs = now();
  let lookedMs: number | null = null;
  return async (db: Database): Promise<void> => {
    const nowMs = now();
    if (lookedMs !== null && Math.abs(nowMs - lookedMs) < LOOK_MS) return;
    const isFirst = lookedMs === null;
    lookedMs = nowMs;
    const unwatched = (await findWatchedNetworks(db)).filter(({ takesMoney, isWatched }) => takesMoney && !isWatched);
    if (isFirst) {
      for (const each of unwatched) {
        if (!networks.includes(each.network)) log.warn({ network: each.network }, describeUnwatched(each));
      }
    }
    // After a start, watchers also get this much time to begin.
    if (Math.abs(nowMs - startMs) < UNWATCHED_MS) return;
    const found = unwatched.filter(({ isSilent }) => isSilent);
    troubles.set(
      'network-unwatched',
      found.map((each): Trouble => {
        const detail = describeUnwatched(each);
        return { kind: 'network-unwatched', network: each.network, subject: '', detail, isReady: true };
      }),
    );
  };
}

/** A shortage is over when no statement has been refused for this long and the database has space again. */
const QUIET_MS = 10_000;

export type ShortageWatch = {
  /** Call this when the database has refused a statement because it's short of `what`. */
  onShortage(what: string): void;
  /** Checks whether the shortage is over. */
  look(db: Database): Promise<void>;
};

/**
 * Remembers that the database is short of a resource (disk, memory, connections). During a shortage some statements still succeed, so a
 * single success proves nothing. The shortage is over when no statement has been refused for a while and a statement that needs space
 * succeeds.
 */
export function createShortageWatch({ troubles, now }: { troubles: HealthProblems; now(): number }): ShortageWatch {
  let refusedAt: number | null = null;
  const onShortage = (what: string) => {
    refusedAt = now();
    const detail = `${what}: until this is fixed, new invoices are refused and payments are not recorded`;
    troubles.set('database-full', [{ kind: 'database-full', network: null, subject: '', detail, isReady: false }]);
  };
  return {
    onShortage,
    look: async (db) => {
      if (refusedAt === null || Math.abs(now() - refusedAt) < QUIET_MS) return;
      await findShortage(db).catch((error: unknown) => {
        const what = shortageBehind(error);
        // The waiting time starts again.
        if (what !== null) onShortage(what);
        throw error;
      });
      refusedAt = null;
      troubles.set('database-full', []);
    },
  };
}

const WATCH_LIVENESS_LOOK_MS = 5000;
/**
 * An alarm is raised after more than this many checks without a change. This takes about 40 seconds, which leaves a slow machine enough
 * time to send the alarm within a minute. A standby takes over within ten seconds.
 */
const LOOKS = 6;
const KIND = 'watch-stalled';

export type Liveness = {
  look(db: Database): Promise<void>;
  /** Whether a job that requires a lease isn't being done, because no process renews the lease. */
  isStalled(work: string): boolean;
};

/**
 * Checks that all work is still being done: the loops of this process, and the jobs that need a process with a lease or serve the delivery
 * queue. The check itself doesn't need a lease, so no one can silence it by tampering with a lease.
 */
export function createLiveness({ troubles, loops }: { troubles: HealthProblems; loops: LoopHealth }): Liveness {
  const seen = new Map<string, { sign: string; looks: number }>();
  let lookedMs = Number.NEGATIVE_INFINITY;
  const isStalled = (work: string) => (seen.get(work)?.looks ?? 0) > LOOKS;
  const note = (work: string, sign: string | null) => {
    const before = seen.get(work);
    if (sign === null) seen.delete(work);
    else seen.set(work, { sign, looks: before?.sign === sign ? before.looks + 1 : 0 });
  };
  return {
    isStalled,
    look: async (db) => {
      if (performance.now() - lookedMs < WATCH_LIVENESS_LOOK_MS) return;
      lookedMs = performance.now();
      const found = loops.look(LOOKS).map(({ name, error }) => {
        const reason = error instanceof AppError ? error.publicReason : null;
        return troubleOf(name, null, `a process's task "${name}" keeps failing: ${reason ?? SEE_LOG}`);
      });
      const signs = await findSignsOfLife(db);
      for (const { work, network, sign, isNeeded } of signs) {
        note(work, isNeeded ? sign : null);
        if (isStalled(work)) found.push(troubleOf(work, network, `no process runs the task "${work}". ${MAYBE_A_ROW}`));
      }
      for (const work of seen.keys()) if (!signs.some((each) => each.work === work)) seen.delete(work);
      troubles.set(KIND, found);
    },
  };
}

const MAYBE_A_ROW = 'An invalid row that was written directly to the database may be the cause';
const SEE_LOG = `see its log for the cause. ${MAYBE_A_ROW}`;

function troubleOf(subject: string, network: Network | null, what: string): Trouble {
  const detail = `${what}. See "watch-stalled" in docs/reference/alarms.md`;
  return { kind: KIND, network, subject, detail, isReady: true };
}

/**
 * Returns each job's last sign of life, and whether the job is needed. A lease is renewed every few seconds, and the oldest due delivery to
 * a working endpoint changes. `sign` is null if the job doesn't exist.
 */
const findSignsOfLife = rowsOf(
  'signs-of-life',
  { work: 'text', network: maybeText<Network>(), sign: 'text?', isNeeded: 'bool' },
  `select l.name as work, n.network, l.holder || ' ' || l.epoch || ' ' || l.expires_at as sign,
     case
       when n.network is not null then exists (
         select from projects p join addresses a on a.project_id = p.id where p.network = n.network and a.retired_at is null)
       when l.name = 'notifier' then exists (select from notify_channels where removed_at is null)
       when l.name = 'rates' then exists (
         select from webhook_endpoints w join api_keys k on k.id = w.id join projects p on p.id = w.project_id
         where w.rate_source is not null and k.revoked_at is null and p.archived_at is null)
       else false end as is_needed
   from leases l left join unnest($1::text[]) n (network) on l.name = 'watcher:' || n.network
   union all
   select 'webhooks', null, min(d.next_attempt_at)::text, true
   from webhook_endpoints w cross join lateral (
     select d.next_attempt_at from deliveries d
     where d.endpoint_id = w.id and d.status = 'pending' order by d.next_attempt_at limit 1) d
   where w.disabled_at is null and w.failing_since is null and w.open_until is null and d.next_attempt_at < now()`,
  () => [[...NETWORKS]],
);

/** Sets a low memory limit, so that anything larger is written to a temporary file, and puts this file on the tables' disk. */
const choose = answerOf(
  'shortage-find-settings',
  { memory: 'text', place: 'text' },
  "select set_config('work_mem', '64kB', true) as memory, set_config('temp_tablespaces', '', true) as place",
  () => [],
  () => undefined,
);

/** Writes about three megabytes. The file is deleted when the statement ends. */
const fill = answerOf(
  'shortage-find',
  { count },
  'select count(*) as count from generate_series(1, 100000)',
  () => [],
  () => undefined,
);

/** Writes a temporary file of a few megabytes to the database's disk. Throws `DATABASE_UNAVAILABLE` if there's no space. */
export async function findShortage(db: Pick<Database, 'snapshot'>): Promise<void> {
  await db.snapshot(async (tx) => {
    await choose(tx);
    await fill(tx);
  });
}
