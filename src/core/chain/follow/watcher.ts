import type { Gauge } from 'prom-client';
import { ALARM_KINDS, type AlarmKind } from '../../domain/alarm-kinds.ts';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { whileLeading } from '../../payments/watching.ts';
import type { Logger } from '../../runtime/log.ts';
import { type LoopHealth, startLoop } from '../../runtime/loop.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { countOpenAlarms, findOpenAlarms, resolveAlarms, tellAlarm } from '../../store/chain/alarms.ts';
import { markChecksDue } from '../../store/chain/balance-checks.ts';
import { findHalt } from '../../store/chain/cursor.ts';
import { acquireLease, type Lease, releaseLease, renewLease, watcherLease } from '../../store/chain/leases.ts';
import {
  type EnergyPriceSeen,
  findRememberedPauses,
  saveChainStatus,
  saveNodesStatus,
} from '../../store/chain/status.ts';
import type { Sql } from '../../store/db/database.ts';
import { ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ENERGY_PRICE } from '../nodes/questions.ts';
import { createFollower, type Follower } from './follower.ts';
import type { Alarms, FollowDeps } from './following.ts';

type WatcherDeps = Omit<FollowDeps, 'alarms'> & LeaseOptions;

/** After each failure the pause doubles, up to this limit, to protect an overloaded node or database. */
const MAX_PAUSE_MS = 5000;
/**
 * While no node may be asked, or an operator has to decide, the watcher retries this many times per block time, but at most once every 250
 * ms.
 */
const LOOKS_PER_BLOCK = 3;
const MIN_WAIT_MS = 250;

const NOT_ABOUT_THE_CHAIN = new Set(['LEASE_LOST', 'DATABASE_UNAVAILABLE']);

/** Follows one network while this process holds its lease. Runs until it's stopped. */
export function startWatcher(deps: WatcherDeps) {
  const { network, pool } = deps;
  const log = deps.log.child({ network });
  const held = holdLease({ ...deps, log }, () => look.forget());
  const look = createLook({ ...deps, log }, held);
  const following = startLoop({
    name: `watcher of ${network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      const lease = held.current();
      if (lease === null) await forgetGauges(deps.metrics, network);
      if (lease === null || !held.isHeld()) return Math.min(deps.blockMs, held.askMs);
      try {
        return await look.once(lease, isStopping);
      } catch (error) {
        // Stopping aborts the pending request, so the failure says nothing about the node.
        if (isStopping()) return 0;
        await look.onFailure(error, lease);
        // These errors are logged once, as an alarm, and the pool sets its own pauses.
        const code = codeOf(error);
        const failedPauseMs = Math.max(MIN_WAIT_MS, deps.blockMs / LOOKS_PER_BLOCK);
        if (code === 'NO_NODE' || code === 'CHAIN_HALTED') return { failedPauseMs };
        throw error;
      }
    },
  });
  return {
    /** Whether this process holds the network's lease. */
    isLeader: held.isHeld,
    stop: async () => {
      const ended = following.stop();
      // Aborts the pending request, so that stopping doesn't have to wait for a hanging node.
      await pool.close();
      await ended;
      await held.stop();
    },
  };
}

/** Follows the chain step by step, and notifies the operator of changes. */
function createLook(deps: WatcherDeps, held: HeldLease) {
  const { network, pool, metrics, log } = deps;
  const db = whileLeading(deps.db, network, held.isHeld);
  const alarms = createAlarms({ db, network, log, metrics });
  const visibility = createVisibility({ ...deps, db, alarms });
  const follower = createFollower({ ...deps, db, alarms }, async () => {
    noteHead();
    await recorder.record();
  });
  const noteHead = () => visibility.onHead(follower.status()?.headNumber ?? -1);
  const { status } = follower;
  const blindReason = visibility.reason;
  const recorder = createStatusRecorder({ ...deps, db, alarms, isLeader: held.isHeld, status, blindReason });
  /** The lease for which the previous process's state has been loaded. */
  let begun: Lease | null = null;
  const begin = async (lease: Lease) => {
    if (begun === lease) return;
    // Restore the nodes' pauses, because a node may have caused the crash that led to this restart.
    pool.restore(await findRememberedPauses(db, network, deps.now()));
    await visibility.begin();
    begun = lease;
  };
  const report = async () => {
    const change = await visibility.notify();
    if (change !== null) recorder.hurry();
    if (change === 'regained') recorder.onIncident();
    await recorder.record();
  };
  return {
    forget: follower.reset,
    /** Returns the pause until the next call. */
    once: async (lease: Lease, isStopping: () => boolean): Promise<number> => {
      await begin(lease);
      const halt = await findHalt(db, network);
      if (halt !== null) throw new AppError('CHAIN_HALTED', `the watcher is halted: ${halt.reason}`);
      await alarms.resolve('halted');
      const { pauseMs, examined } = await follower.step(lease, isStopping);
      noteHead();
      visibility.onLook(examined);
      await report();
      return pauseMs;
    },
    onFailure: async (error: unknown, lease: Lease): Promise<void> => {
      const code = codeOf(error);
      metrics.watcherFailures.inc({ network, code });
      // Only the database can decide that the lease is lost. If the lease has merely expired by this process's clock, the process waits,
      // because a late renewal can still succeed.
      if (code === 'LEASE_LOST') held.lose(lease);
      // Before `begin`, a status would replace the pauses that are still to be restored.
      if (!held.isHeld() || begun !== lease) return;
      const reason = reasonOf(error);
      if (code === 'BLOCK_UNVERIFIABLE') {
        await alarms.raise('unverifiable-block', '', reason);
        recorder.onIncident();
      }
      if (NOT_ABOUT_THE_CHAIN.has(code)) visibility.forgetFailures();
      else visibility.onFailure(reason);
      await report();
    },
  };
}

function codeOf(error: unknown): string {
  return error instanceof AppError ? error.code : 'INTERNAL';
}

/**
 * Once this process is no longer the network's leader, removes the metrics that only the leader knows. Otherwise a standby would keep
 * showing resolved alarms or a blind chain.
 */
async function forgetGauges(metrics: Metrics, network: Network): Promise<void> {
  const plain = [
    ...[metrics.chainHeadNumber, metrics.chainSolidNumber, metrics.chainOwnSolidNumber, metrics.chainProcessedNumber],
    ...[metrics.chainLagBlocks, metrics.chainCatchUpRate, metrics.chainCatchUpSeconds, metrics.chainBlind],
  ];
  for (const gauge of plain) gauge.remove({ network });
  const detailed = [
    ...[metrics.alarmsOpen, metrics.balanceDifference, metrics.capacityFreeRatio, metrics.capacityDaysLeft],
  ] as Gauge[];
  for (const gauge of detailed) {
    const { values } = await gauge.get();
    for (const { labels } of values) if (labels['network'] === network) gauge.remove(labels);
  }
}

type VisibilityDeps = Pick<FollowDeps, 'db' | 'network' | 'blockMs' | 'alarms' | 'log' | 'metrics'>;

const IMPACT = 'payments are not confirmed, and invoices do not expire: ';
/** As long as the chain isn't visible, its alarm is raised again at this interval, because the reason changes. */
const REPEAT_MS = 60_000;

/** Tells the operator whether the chain is visible: through an alarm, a metric, and a log line when it becomes visible again. */
export function createVisibility({ db, network, blockMs, alarms, log, metrics }: VisibilityDeps) {
  const blindness = createBlindness(blockMs);
  /** The state that was last reported to the operator. */
  let isBlind = false;
  let raiseNextMs = Number.NEGATIVE_INFINITY;
  return {
    ...blindness,
    /** Takes over a previous process's alarm. Its reason may be out of date: that process may have had other nodes. */
    begin: async () => {
      const open = (await findOpenAlarms(db, network)).find(({ kind }) => kind === 'blind');
      blindness.begin(open?.detail.replace(IMPACT, '') ?? null);
      isBlind = open !== undefined;
      raiseNextMs = Number.NEGATIVE_INFINITY;
    },
    /** Reports a change if there is one. Returns the change, or `null`. */
    notify: async (): Promise<'lost' | 'regained' | null> => {
      const reason = blindness.reason();
      metrics.chainBlind.set({ network }, reason === null ? 0 : 1);
      // This process or another one may have raised the alarm.
      if (reason === null) await alarms.resolve('blind');
      else if (!isBlind || performance.now() >= raiseNextMs) {
        await alarms.raise('blind', '', IMPACT + reason);
        raiseNextMs = performance.now() + REPEAT_MS;
      }
      if (isBlind === (reason !== null)) return null;
      if (reason === null) log.info('the chain is visible again');
      isBlind = reason !== null;
      return isBlind ? 'lost' : 'regained';
    },
  };
}

/** If the newest examined block is older than this many block times, the nodes or the network must have stopped. */
const STALE_BLOCKS = 20;
/**
 * A public node sometimes refuses a request, and a fork during reading causes one contradiction. A node that is down or on another chain
 * fails repeatedly.
 */
const FAILURES = 3;
/**
 * The watcher counts as blind after this many block times without a block or a successful step. A watcher isn't blind just because steps
 * fail several times a second, or because a service that starts or resumes has to work through old blocks first.
 */
const UNSEEN_BLOCKS = 3;

/**
 * Judges from the result of each step whether the chain is visible. The watcher is blind if nodes don't answer, or if they show only old
 * blocks and nothing new. Only a fresh block ends blindness, because even a node that keeps falling behind shows a new block occasionally.
 * All times are monotonic milliseconds.
 */
export function createBlindness(blockMs: number, clockMs = () => performance.now()) {
  let reason: string | null = null;
  let failures = 0;
  let highest = -1;
  let newBlockMs = clockMs();
  let seenMs = newBlockMs;
  const isLongAgo = (ms: number) => clockMs() - ms >= UNSEEN_BLOCKS * blockMs;
  return {
    /** Returns why the chain isn't visible, or `null` if it is. */
    reason: () => reason,
    /** Call this when this process starts following. `open` is why the chain wasn't visible to a previous process, or `null`. */
    begin: (open: string | null) => {
      reason = open;
      failures = 0;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    /** Call this when the chain is verified up to this height. Only a height above all previous ones counts as a new block. */
    onHead: (number: number) => {
      if (number <= highest) return;
      highest = number;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    /** Call this when the nodes have answered, with the newest examined block's age and time. */
    onLook: ({ ageMs, time }: { ageMs: number; time: UnixMs }) => {
      failures = 0;
      if (ageMs <= STALE_BLOCKS * blockMs) {
        reason = null;
        seenMs = clockMs();
      } else if (reason !== null || isLongAgo(newBlockMs)) {
        // The alarm shows this text for a while, so it contains no age.
        reason = `the newest block that Quittance has read was created at ${toIso(time)}`;
      }
    },
    onFailure: (why: string) => {
      failures += 1;
      if (reason !== null || (failures >= FAILURES && isLongAgo(seenMs))) reason = why;
    },
    /** Discards the failures so far, because they say nothing about the chain. */
    forgetFailures: () => {
      failures = 0;
    },
  };
}

type LeaseOptions = {
  /** Identifies this process in the lease. */
  holder: string;
  /** After the watcher crashes, its successor starts within this time by the database's clock. Default: 8,000. */
  leaseMs?: number;
  loops?: LoopHealth;
};

type HeldLease = ReturnType<typeof holdLease>;

/**
 * The lease is short, because nothing is confirmed until a successor starts. It's long enough to retry a failed renewal before it expires.
 */
const LEASE_MS = 8000;
const RENEWALS_PER_LEASE = 4;
/**
 * A standby tries to acquire the lease twice a second, which is more often than the holder renews it. After a crash, the chain is therefore
 * unwatched for less than 10 s.
 */
const ASKS_PER_RENEWAL = 4;

/** Tries to acquire a network's lease until it succeeds, and then keeps renewing it. */
function holdLease(deps: LeaseOptions & Pick<FollowDeps, 'db' | 'network' | 'log'>, onLost: () => void) {
  const { db, network, log, leaseMs = LEASE_MS } = deps;
  const renewMs = leaseMs / RENEWALS_PER_LEASE;
  const askMs = renewMs / ASKS_PER_RENEWAL;
  let lease: Lease | null = null;
  /** A monotonic time; the lease is counted from just before the request was sent. */
  let surelyUntilMs = 0;
  /**
   * Whether this process certainly holds the lease, by its own clock. Use this where the database doesn't check the lease, as it does for
   * ledger writes.
   */
  const isHeld = () => lease !== null && performance.now() < surelyUntilMs;
  const drop = () => {
    lease = null;
    onLost();
  };
  const renewal = startLoop({
    name: `lease of ${network}`,
    log,
    health: deps.loops,
    maxPauseMs: renewMs,
    run: async () => {
      const askedMs = performance.now();
      if (lease === null) lease = await acquireLease(db, watcherLease(network), deps.holder, leaseMs);
      else if (!(await renewLease(db, lease, leaseMs))) drop();
      if (lease === null) return askMs;
      surelyUntilMs = askedMs + leaseMs;
      return renewMs;
    },
  });
  return {
    current: () => lease,
    isHeld,
    /**
     * Call this when the database reports that another process has the lease. Does nothing if that lease has expired or this process has
     * acquired it again.
     */
    lose: (lost: Lease) => {
      if (lease === lost && isHeld()) drop();
    },
    /** How often this process tries to acquire the lease while another process has it. */
    askMs,
    stop: async () => {
      await renewal.stop();
      if (lease !== null) await releaseLease(db, lease).catch(() => undefined);
    },
  };
}

const STATUS_MS = 2000;
/** All incidents within this time lead to a single comparison of the books, because each comparison costs requests. */
const INCIDENT_MS = 3_600_000;

type StatusDeps = Pick<FollowDeps, 'db' | 'network' | 'pool' | 'alarms' | 'now'> & {
  isLeader(): boolean;
  status: Follower['status'];
  blindReason(): string | null;
};

/** Stores the watcher's status in the database, so that every process can read it. */
function createStatusRecorder({ db, network, pool, alarms, now, isLeader, status, blindReason }: StatusDeps) {
  const energyPrice = createEnergyPrice({ pool, now });
  let recordedMs = 0;
  /** The nodes that were paused at the last check. */
  let resting: readonly string[] = [];
  let hasIncident = false;
  let incidentNextMs = 0;
  return {
    /** Writes the status at most every two seconds. */
    record: async () => {
      if (!isLeader()) return;
      const nowMs = performance.now();
      const nodes = pool.health();
      const before = resting;
      resting = nodes.filter(({ pausedForMs }) => pausedForMs > 0).map(({ url }) => url);
      // A new pause is stored immediately, so that it survives a crash.
      const isNewlyResting = resting.some((url) => !before.includes(url));
      if (nowMs - recordedMs < STATUS_MS && !isNewlyResting) return;
      recordedMs = nowMs;
      await alarms.refresh();
      if (hasIncident && nowMs >= incidentNextMs) {
        hasIncident = false;
        incidentNextMs = nowMs + INCIDENT_MS;
        await markChecksDue(db, network);
      }
      const [current, blind] = [status(), blindReason()];
      if (current === null) return saveNodesStatus(db, network, now(), { blind, nodes, catchUp: null });
      if (blind === null) energyPrice.refresh();
      await saveChainStatus(db, network, now(), { ...current, blind, nodes, energyPrice: energyPrice.seen() });
    },
    /** Makes the next call to `record` write immediately. */
    hurry: () => {
      recordedMs = 0;
    },
    /** Schedules a comparison of the books with the chain. */
    onIncident: () => {
      hasIncident = true;
    },
  };
}

/** The network's representatives occasionally vote on the price. A vote takes effect at the start of the next six-hour period. */
const REFRESH_MS = 60 * 60_000;
/** Delays the first request, because blocks have priority after a start. */
const FIRST_MS = 15_000;
/** A single operator could be wrong. If two differ, the price is treated as unknown. */
const OPERATORS = 2;

type Deps = { pool: Pick<NodePool, 'available'>; now(): UnixMs };

/** Keeps the energy price that nodes report. It's used only for an estimate that payers see. */
export function createEnergyPrice({ pool, now }: Deps, clockMs = () => performance.now()) {
  let nextMs = clockMs() + FIRST_MS;
  let seen: EnergyPriceSeen | null = null;
  const ask = async () => {
    const nodes = ofDifferentOperators(await pool.available(), OPERATORS);
    // A node that refuses this question may still serve blocks correctly.
    const answers = await Promise.all(nodes.map((node) => node.ask(ENERGY_PRICE, { isOptional: true }).catch(orNull)));
    const [sun = null, other = sun] = answers.filter((answer) => answer !== null);
    if (sun !== null && sun === other) seen = { sun, at: now() };
  };
  return {
    /** Returns the last price that operators agreed on, with its time, or `null` if they haven't agreed on any yet. */
    seen: () => seen,
    /** Asks the nodes in the background, once an hour. Never throws. */
    refresh: () => {
      if (clockMs() < nextMs) return;
      nextMs = clockMs() + REFRESH_MS;
      // After a failure, the last price stays in use and only gets older.
      ask().catch(() => undefined);
    },
  };
}

type AlarmDeps = { db: Sql; network: Network; log: Logger; metrics: Metrics };

export function createAlarms({ db, network, log, metrics }: AlarmDeps): Alarms {
  /** The kinds of alarms that may be open, or `null` until they have been loaded. */
  let open: Set<AlarmKind> | null = null;
  const refresh = async () => {
    const counts = await countOpenAlarms(db, network);
    open = new Set(counts.keys());
    for (const kind of ALARM_KINDS) metrics.alarmsOpen.set({ network, kind }, counts.get(kind) ?? 0);
  };
  return {
    refresh,
    raise: async (kind, subject, detail, tx = db) => {
      open?.add(kind);
      await tellAlarm({ db: tx, log }, kind, { network, subject, detail });
    },
    resolve: async (kind) => {
      if (open === null) await refresh();
      if (open?.has(kind) !== true) return;
      const count = await resolveAlarms(db, network, kind);
      open.delete(kind);
      if (count > 0) log.info({ alarm: kind }, 'the alarm is resolved');
    },
  };
}
