import { randomUUID } from 'node:crypto';
import type { AlarmKind } from '../domain/alarm-kinds.ts';
import { AppError } from '../domain/errors.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import { shortageBehind } from '../domain/shortage.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { LoopHealth } from '../runtime/loop-health.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { raiseAlarm, resolveAlarms, resolveUnseenAlarms } from '../store/chain/alarms.ts';
import { findWatchedNetworks, UNWATCHED_MS } from '../store/chain/watched-networks.ts';
import type { Database } from '../store/db/database.ts';
import { findShortage } from '../store/db/find-shortage.ts';
import { rowsOf } from '../store/db/rows-of.ts';
import { maybeText } from '../store/db/statement.ts';
import { describeUnwatched } from './watched-networks.ts';

/** Problems that a process detects in its environment. Each is also an alarm. */
const TROUBLE_KINDS = [
  'database-full',
  'network-unwatched',
  'clock-wrong',
  'watch-stalled',
] as const satisfies readonly AlarmKind[];
type TroubleKind = (typeof TROUBLE_KINDS)[number];

/**
 * `network` `null`: it concerns all of them. `detail` is public, so it names no host. `isReady`: whether invoices can be created in the
 * meantime.
 */
type Trouble = {
  kind: TroubleKind;
  network: Network | null;
  subject: string;
  detail: string;
  isReady: boolean;
};

/** The current problems, as far as this process knows. `GET /readyz`, the alarms and the log all report this list. */
export type HealthProblems = {
  /** Replaces the known problems of a kind. Logs new and resolved ones. */
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
/** An alarm is raised again at this interval while its problem lasts, so that the age of an alarm shows whether its process has ended. */
const REPEAT_MS = 60_000;

type Deps = {
  db: Database;
  networks: readonly Network[];
  log: Logger;
  metrics: Pick<Metrics, 'troubles'>;
  troubles: HealthProblems;
  /** The checks for problems. Each decides its own interval. */
  looks: readonly ((db: Database) => Promise<void>)[];
};

/** Runs the checks every second, and raises alarms for problems. Never ends by itself. */
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
      // One check that waits for an unavailable database is enough for a round, and for a stop. A check that fails prevents no other.
      for (const work of [...looks, alarms.keep]) {
        if (isStopping() || !(await unlessAway(work(db)).catch(hasFailed))) break;
      }
      if (failures.length > 0) throw failures[0];
      return TICK_MS;
    },
  });
}

/**
 * Returns whether the work was done. While the database is unavailable or full, no alarm can be written. The list, the log and the metric
 * have reported the problem already, and the next round tries again.
 */
async function unlessAway(work: Promise<void>): Promise<boolean> {
  return work.then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof AppError) || error.code !== 'DATABASE_UNAVAILABLE') throw error;
      // If the database is only short of something, it still answers, and other checks may succeed.
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
      await raiseAlarm(db, network, { id: randomUUID(), ...trouble });
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
 * Finds networks that have active addresses and no watcher. Every process checks this, because there may be no watcher process at all. At
 * the start a line is logged for a network that this process doesn't know.
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
    // After a start, watchers get the same time to begin.
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

/** A shortage ends when no statement was refused for this long, and the database has room. */
const QUIET_MS = 10_000;

export type ShortageWatch = {
  /** Call this when the database refused a statement because it's short of `what`. */
  onShortage(what: string): void;
  /** Checks whether the shortage is over. */
  look(db: Database): Promise<void>;
};

/**
 * Remembers that the database is short of something (disk, memory, connections). During a shortage some statements still succeed, so one
 * success proves nothing. It ends once none was refused for a while and a statement that needs room succeeds.
 */
export function createShortageWatch({ troubles, now }: { troubles: HealthProblems; now(): number }): ShortageWatch {
  let refusedAt: number | null = null;
  return {
    onShortage: (what) => {
      refusedAt = now();
      const detail = `${what}: until this is fixed, new invoices are refused and payments are not recorded`;
      troubles.set('database-full', [{ kind: 'database-full', network: null, subject: '', detail, isReady: false }]);
    },
    look: async (db) => {
      if (refusedAt === null || Math.abs(now() - refusedAt) < QUIET_MS) return;
      // If this is refused, `onShortage` is called, and the time starts again.
      await findShortage(db);
      refusedAt = null;
      troubles.set('database-full', []);
    },
  };
}

const WATCH_LIVENESS_LOOK_MS = 5000;
/** Nine checks, so that the alarm is sent within a minute. A standby takes over within ten seconds. */
const LOOKS = 8;
const KIND = 'watch-stalled';

export type Liveness = {
  look(db: Database): Promise<void>;
  /** Whether no process does a job that requires a lease: the lease isn't renewed by any process. */
  isStalled(work: string): boolean;
};

/**
 * Checks that all work continues: the loops of this process, and the jobs that some process must do with a lease or for the delivery queue.
 * It needs no lease itself, so tampering with a lease can't silence it.
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
      const found = loops
        .look(LOOKS)
        .map((name) =>
          troubleOf(name, null, `the task "${name}" of a process keeps failing: see its log for the cause`),
        );
      const signs = await findSignsOfLife(db);
      for (const { work, network, sign, isNeeded } of signs) {
        note(work, isNeeded ? sign : null);
        if (isStalled(work)) found.push(troubleOf(work, network, `no process runs the task "${work}"`));
      }
      for (const work of seen.keys()) if (!signs.some((each) => each.work === work)) seen.delete(work);
      troubles.set(KIND, found);
    },
  };
}

function troubleOf(subject: string, network: Network | null, what: string): Trouble {
  const detail = `${what}. An invalid row that was written directly to the database may be the cause. See "watch-stalled" in docs/reference/alarms.md`;
  return { kind: KIND, network, subject, detail, isReady: true };
}

/**
 * The sign of life of each job, and whether the job is needed. A lease is renewed every few seconds, and the oldest delivery due to a
 * working endpoint changes. `sign` is null if there's no such job.
 */
const findSignsOfLife = rowsOf(
  'signs-of-life',
  { work: 'text', network: maybeText<Network>(), sign: 'text?', isNeeded: 'bool' },
  `select l.name as work, n.network, l.holder || ' ' || l.epoch || ' ' || l.expires_at as sign,
     case
       when n.network is not null then exists (
         select from projects p join addresses a on a.project_id = p.id where p.network = n.network and a.retired_at is null)
       when l.name = 'notifier' then exists (select from notify_channels where removed_at is null)
       when l.name = 'rates' then exists (select from webhook_endpoints where rate_source is not null and disabled_at is null)
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
