import type { Gauge } from 'prom-client';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { whileLeading } from '../../payments/watching.ts';
import type { Logger } from '../../runtime/log.ts';
import { startLoop } from '../../runtime/loop.ts';
import type { LoopHealth } from '../../runtime/loop-health.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { findOpenAlarms } from '../../store/chain/alarms.ts';
import { markChecksDue } from '../../store/chain/balance-checks.ts';
import { findHalt } from '../../store/chain/cursor.ts';
import { acquireLease, type Lease, releaseLease, renewLease, watcherLease } from '../../store/chain/leases.ts';
import { type EnergyPriceSeen, findRememberedPauses, saveChainStatus } from '../../store/chain/status.ts';
import type { Database } from '../../store/db/database.ts';
import { ENERGY_PRICE } from '../nodes/ask-energy-price.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import { type Alarms, createAlarms } from './alarms.ts';
import { createFollower, type Follower } from './follower.ts';
import type { FollowDeps } from './following.ts';

type WatcherDeps = Omit<FollowDeps, 'alarms'> & LeaseOptions;

type Watcher = {
  /** Whether this process holds the network's lease. */
  isLeader(): boolean;
  stop(): Promise<void>;
};

/** After a failure the pause doubles up to this, so that a node or a database which limits us is left alone. */
const MAX_PAUSE_MS = 5000;
/** While no node may be asked, or an operator must decide, look again this often in a block time, and every 250 ms at most. */
const LOOKS_PER_BLOCK = 3;
const MIN_WAIT_MS = 250;

const NOT_ABOUT_THE_CHAIN = new Set(['LEASE_LOST', 'DATABASE_UNAVAILABLE']);

/** Follows one network while this process holds its lease. Never ends by itself. */
export function startWatcher(deps: WatcherDeps): Watcher {
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
        // Stopping destroys the request under way, which says nothing about the node.
        if (isStopping()) return 0;
        await look.onFailure(error, lease);
        // The log tells of these once, as an alarm; the pool has its own pauses.
        const code = codeOf(error);
        const failedPauseMs = Math.max(MIN_WAIT_MS, deps.blockMs / LOOKS_PER_BLOCK);
        if (code === 'NO_NODE' || code === 'CHAIN_HALTED') return { failedPauseMs };
        throw error;
      }
    },
  });
  return {
    isLeader: held.isHeld,
    stop: async () => {
      const ended = following.stop();
      // Ends the request under way, so that stopping does not wait for a node that hangs.
      await pool.close();
      await ended;
      await held.stop();
    },
  };
}

/** Looks at the chain, one look after the other, and tells the operator of changes. */
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
  /** The lease under which the word of a former process was read. */
  let begun: Lease | null = null;
  const begin = async (lease: Lease) => {
    if (begun === lease) return;
    // A crash does not end a node's pause, for the node may have caused the crash.
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
    /** Returns the pause until the next. */
    once: async (lease: Lease, isStopping: () => boolean): Promise<number> => {
      await begin(lease);
      const halt = await findHalt(db, network);
      if (halt !== null) throw new AppError('CHAIN_HALTED', `the watcher is halted: ${halt.reason}`);
      await alarms.resolve('halted');
      const { pauseMs, examinedAgeMs } = await follower.step(lease, isStopping);
      noteHead();
      visibility.onLook(examinedAgeMs);
      await report();
      return pauseMs;
    },
    onFailure: async (error: unknown, lease: Lease): Promise<void> => {
      const code = codeOf(error);
      metrics.watcherFailures.inc({ network, code });
      // By its own clock a process only waits: the renewal that is late may still come in time.
      if (code === 'LEASE_LOST') held.lose(lease);
      if (!held.isHeld()) return;
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
 * Takes what only the leader of a network knows out of the metrics of this process, which is not: else an alarm that is over, or a chain that
 * is seen again, would look otherwise here for as long as it stands by.
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

/** Tells the operator of blindness: by an alarm, a metric, and a line in the log when it is over. */
type Visibility = Omit<Blindness, 'begin'> & {
  /** Takes over the alarm of a former process, which ends or goes on here: it is not raised twice. */
  begin(): Promise<void>;
  /** Tells of a change, and returns whether there was one. */
  notify(): Promise<'lost' | 'regained' | null>;
};

type VisibilityDeps = {
  db: Database;
  network: Network;
  blockMs: number;
  alarms: Alarms;
  log: Logger;
  metrics: Pick<Metrics, 'chainBlind'>;
};

function createVisibility({ db, network, blockMs, alarms, log, metrics }: VisibilityDeps): Visibility {
  const blindness = createBlindness(blockMs);
  /** The state that the operator was told last. */
  let isBlind = false;
  return {
    ...blindness,
    begin: async () => {
      const open = (await findOpenAlarms(db, network)).find(({ kind }) => kind === 'blind');
      blindness.begin(open?.detail ?? null);
      isBlind = open !== undefined;
    },
    notify: async () => {
      const reason = blindness.reason();
      metrics.chainBlind.set({ network }, reason === null ? 0 : 1);
      // This process or another one may have raised the alarm.
      if (reason === null) await alarms.resolve('blind');
      if (isBlind === (reason !== null)) return null;
      if (reason === null) log.info('the chain is visible again');
      else await alarms.raise('blind', '', `blind: invoices are created, nothing is confirmed or expired: ${reason}`);
      isBlind = reason !== null;
      return isBlind ? 'lost' : 'regained';
    },
  };
}

/** Whether the chain is visible, from what each look at it brought. Times are monotonic milliseconds. */
type Blindness = {
  /** Why nothing is seen of the chain, or `null`. */
  reason(): string | null;
  /** This process begins to look; `reason` is what is open of a former one. */
  begin(reason: string | null): void;
  /** Verified up to this height. Only one that was never reached before is news. */
  onHead(number: number): void;
  /** The nodes answered, and the newest examined block is so old. */
  onLook(examinedAgeMs: number): void;
  onFailure(reason: string): void;
  /** Forgets the failures so far, because they say nothing about the chain. */
  forgetFailures(): void;
};

/** A newest examined block that is older than this many block times means that the nodes, or the network, have stopped. */
const STALE_BLOCKS = 20;
/**
 * A public node refuses an answer now and then, and a fork while blocks are read contradicts once. A node that is down, or on
 * another chain, fails again and again.
 */
const FAILURES = 3;
/**
 * So many block times without a block or a look that succeeded. Looks fail several times a second, and a service that starts,
 * or comes back, works through old blocks: neither is blind yet.
 */
const UNSEEN_BLOCKS = 3;

/**
 * The watcher is blind when it gets no answer, or old blocks and no further one. Only a fresh block ends that: a node that falls
 * further and further behind shows a new block now and then.
 */
export function createBlindness(blockMs: number, clockMs = () => performance.now()): Blindness {
  let reason: string | null = null;
  let failures = 0;
  let highest = -1;
  let newBlockMs = clockMs();
  let seenMs = newBlockMs;
  const isLongAgo = (ms: number) => clockMs() - ms >= UNSEEN_BLOCKS * blockMs;
  return {
    reason: () => reason,
    begin: (open) => {
      reason = open;
      failures = 0;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    onHead: (number) => {
      if (number <= highest) return;
      highest = number;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    onLook: (examinedAgeMs) => {
      failures = 0;
      if (examinedAgeMs <= STALE_BLOCKS * blockMs) {
        reason = null;
        seenMs = clockMs();
      } else if (reason !== null || isLongAgo(newBlockMs)) {
        reason = `the newest block that nodes show to examine is ${Math.round(examinedAgeMs / 1000)} s old`;
      }
    },
    onFailure: (why) => {
      failures += 1;
      if (reason !== null || (failures >= FAILURES && isLongAgo(seenMs))) reason = why;
    },
    forgetFailures: () => {
      failures = 0;
    },
  };
}

type LeaseOptions = {
  /** Names this process in the lease. */
  holder: string;
  /** A crashed watcher's successor starts after this long at most, by the database's clock; 8,000 when absent. */
  leaseMs?: number;
  loops?: LoopHealth;
};

type HeldLease = {
  current(): Lease | null;
  /** Whether this process surely holds it: by our own clock, for what the database does not decide as it does for the ledger. */
  isHeld(): boolean;
  /** The database says that it is another's. Does nothing about a lease that ran out or was followed by one of ours. */
  lose(lost: Lease): void;
  /** While it is another's, the time from one request for it to the next. */
  askMs: number;
  /** Gives it back. */
  stop(): Promise<void>;
};

/** Short, for nothing is confirmed until a successor starts; a renewal that fails is tried again before it ends. */
const LEASE_MS = 8000;
const RENEWALS_PER_LEASE = 4;
/** A standby asks for the lease twice a second, more often than it is renewed: a crash leaves the chain unwatched for less than 10 s. */
const ASKS_PER_RENEWAL = 4;

/** Asks for a network's lease until this process has it, and renews it from then on. */
function holdLease(
  deps: LeaseOptions & { db: Database; network: Network; log: Logger },
  onLost: () => void,
): HeldLease {
  const { db, network, log, leaseMs = LEASE_MS } = deps;
  const renewMs = leaseMs / RENEWALS_PER_LEASE;
  const askMs = renewMs / ASKS_PER_RENEWAL;
  let lease: Lease | null = null;
  /** Monotonic, counted from before it was asked for. */
  let surelyUntilMs = 0;
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
    lose: (lost) => {
      if (lease === lost && isHeld()) drop();
    },
    askMs,
    stop: async () => {
      await renewal.stop();
      if (lease !== null) await releaseLease(db, lease).catch(() => undefined);
    },
  };
}

const STATUS_MS = 2000;
/** Incidents that follow each other have the books compared once in this time: every comparison costs requests. */
const INCIDENT_MS = 3_600_000;

type StatusDeps = {
  db: Database;
  network: Network;
  pool: Pick<NodePool, 'health' | 'available'>;
  alarms: Alarms;
  now(): UnixMs;
  isLeader(): boolean;
  status: Follower['status'];
  blindReason(): string | null;
};

/** Writes where the watcher stands to the database, for every process to read. */
function createStatusRecorder({ db, network, pool, alarms, now, isLeader, status, blindReason }: StatusDeps): {
  /** Every two seconds at most. */
  record(): Promise<void>;
  /** The next record is written at once. */
  hurry(): void;
  /** Has the books compared with the chain. */
  onIncident(): void;
} {
  const energyPrice = createEnergyPrice({ pool, now });
  let recordedMs = 0;
  /** Nodes that were paused when it was last looked. */
  let resting: readonly string[] = [];
  let hasIncident = false;
  let incidentNextMs = 0;
  return {
    record: async () => {
      const current = status();
      if (!isLeader() || current === null) return;
      const nowMs = performance.now();
      const nodes = pool.health();
      const before = resting;
      resting = nodes.filter(({ pausedForMs }) => pausedForMs > 0).map(({ url }) => url);
      // A new pause is written at once, for it should outlive a crash.
      const isNewlyResting = resting.some((url) => !before.includes(url));
      if (nowMs - recordedMs < STATUS_MS && !isNewlyResting) return;
      recordedMs = nowMs;
      await alarms.refresh();
      if (hasIncident && nowMs >= incidentNextMs) {
        hasIncident = false;
        incidentNextMs = nowMs + INCIDENT_MS;
        await markChecksDue(db, network);
      }
      const blind = blindReason();
      if (blind === null) energyPrice.refresh();
      await saveChainStatus(db, network, now(), { ...current, blind, nodes, energyPrice: energyPrice.seen() });
    },
    hurry: () => {
      recordedMs = 0;
    },
    onIncident: () => {
      hasIncident = true;
    },
  };
}

/** The network votes on it now and then, and what it decided is in force from the next period of six hours on. */
const REFRESH_MS = 60 * 60_000;
/** Blocks come first after a start. */
const FIRST_MS = 15_000;
/** One operator could be wrong; if two differ, nobody knows. */
const OPERATORS = 2;

/** What energy costs, by the nodes. Only an estimate for payers is made of it. */
type KnownEnergyPrice = {
  /** The last that was agreed on, and when; `null` before. */
  seen(): EnergyPriceSeen | null;
  /** Asks anew once an hour, by itself: nothing waits for it. Never throws. */
  refresh(): void;
};

type Deps = { pool: Pick<NodePool, 'available'>; now(): UnixMs };

export function createEnergyPrice({ pool, now }: Deps, clockMs = () => performance.now()): KnownEnergyPrice {
  let nextMs = clockMs() + FIRST_MS;
  let seen: EnergyPriceSeen | null = null;
  const ask = async () => {
    const nodes = ofDifferentOperators(await pool.available(), OPERATORS);
    // A node that refuses this question may show blocks as well as any other.
    const answers = await Promise.all(
      nodes.map((node) => node.ask(ENERGY_PRICE, { isOptional: true }).catch(onRefusal)),
    );
    const [sun = null, other = sun] = answers.filter((answer) => answer !== null);
    if (sun !== null && sun === other) seen = { sun, at: now() };
  };
  return {
    seen: () => seen,
    refresh: () => {
      if (clockMs() < nextMs) return;
      nextMs = clockMs() + REFRESH_MS;
      // What fails leaves the price as it is, which grows old.
      ask().catch(() => undefined);
    },
  };
}

function onRefusal(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}
