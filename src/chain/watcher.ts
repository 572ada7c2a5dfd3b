import { AppError } from '../domain/errors.ts';
import { whileLeading } from '../payments/watching.ts';
import { startLoop } from '../runtime/loop.ts';
import { findOpenAlarms } from '../store/alarms.ts';
import { markChecksDue } from '../store/balance-checks.ts';
import { findHalt } from '../store/chain-cursor.ts';
import { findRememberedPauses, saveChainStatus } from '../store/chain-status.ts';
import { acquireLease, type Lease, releaseLease, renewLease, watcherLease } from '../store/leases.ts';
import { createAlarms } from './alarms.ts';
import { createBlindness } from './blindness.ts';
import { createFollower } from './follower.ts';
import type { FollowDeps } from './following.ts';

export type WatcherDeps = Omit<FollowDeps, 'alarms'> & {
  /** Names this process in the lease. */
  holder: string;
  /** A crashed watcher's successor starts after this long at most, by the database's clock; 8,000 when absent. */
  leaseMs?: number;
};

export type Watcher = {
  /** Whether this process holds the network's lease. */
  isLeader(): boolean;
  stop(): Promise<void>;
};

/** Short, for nothing is confirmed until a successor starts; a renewal that fails is tried again before it ends. */
const LEASE_MS = 8000;
const RENEWALS_PER_LEASE = 4;
/** A standby asks for the lease more often than it is renewed: twice a second, so that a crash leaves the chain unwatched for less than 10 s. */
const ASKS_PER_RENEWAL = 4;
/** After a failure the pause doubles up to this, so that a node or a database which limits us is left alone. */
const MAX_PAUSE_MS = 5000;
/** While no node may be asked, or an operator must decide, look again this often in a block time, and every 250 ms at most. */
const LOOKS_PER_BLOCK = 3;
const MIN_WAIT_MS = 250;
const STATUS_MS = 2000;
/** Incidents that follow each other have the books compared once in this time: every comparison costs requests. */
const INCIDENT_MS = 3_600_000;

const NOT_ABOUT_THE_CHAIN = new Set(['LEASE_LOST', 'DATABASE_UNAVAILABLE']);

/** Follows one network while this process holds its lease. Never ends by itself. */
export function startWatcher(deps: WatcherDeps): Watcher {
  const { network, pool, metrics, leaseMs = LEASE_MS } = deps;
  const renewMs = leaseMs / RENEWALS_PER_LEASE;
  const log = deps.log.child({ network });
  const state = {
    lease: null as Lease | null,
    /** Until when the lease is surely ours, monotonic: counted from before it was asked for. */
    leaseUntilMs: 0,
    /** What the operator was told. */
    isBlind: false,
    /** Under which lease it was read what a former process told. */
    begun: null as Lease | null,
    statusMs: 0,
    /** Nodes that were paused when it was last looked. */
    resting: [] as readonly string[],
    hasIncident: false,
    incidentNextMs: 0,
  };
  // By our own clock, for what the database does not decide as it does for the ledger.
  const isLeader = () => state.lease !== null && performance.now() < state.leaseUntilMs;
  const db = whileLeading(deps.db, network, isLeader);
  const alarms = createAlarms({ db, network, log, metrics });
  const blindness = createBlindness(deps.blockMs);
  const tellStatus = async (): Promise<void> => {
    const status = follower.status();
    if (!isLeader() || status === null) return;
    const nowMs = performance.now();
    const nodes = pool.health();
    const resting = nodes.filter(({ pausedForMs }) => pausedForMs > 0).map(({ url }) => url);
    // A new pause is written at once, for it should outlive a crash.
    const isNewlyResting = resting.some((url) => !state.resting.includes(url));
    state.resting = resting;
    if (nowMs - state.statusMs < STATUS_MS && !isNewlyResting) return;
    state.statusMs = nowMs;
    await alarms.refresh();
    if (state.hasIncident && nowMs >= state.incidentNextMs) {
      state.hasIncident = false;
      state.incidentNextMs = nowMs + INCIDENT_MS;
      await markChecksDue(db, network);
    }
    await saveChainStatus(db, network, deps.now(), { ...status, blind: blindness.reason(), nodes });
  };
  const follower = createFollower({ ...deps, db, log, alarms }, async () => {
    noteHead();
    await tellStatus();
  });
  const noteHead = () => blindness.onHead(follower.status()?.headNumber ?? -1);
  /** What a former process told of is either over or goes on: here it is not told twice. */
  const begin = async (lease: Lease) => {
    if (state.begun === lease) return;
    // What a node did is not forgiven by a crash, for it may have been the node that caused it.
    pool.restore(await findRememberedPauses(db, network, deps.now()));
    const open = (await findOpenAlarms(db, network)).find(({ kind }) => kind === 'blind');
    blindness.begin(open?.detail ?? null);
    state.isBlind = open !== undefined;
    state.begun = lease;
  };
  const tellBlindness = async () => {
    const reason = blindness.reason();
    metrics.chainBlind.set({ network }, reason === null ? 0 : 1);
    // Whoever raised it.
    if (reason === null) await alarms.calm('blind');
    if (state.isBlind === (reason !== null)) return;
    state.statusMs = 0;
    if (reason === null) {
      log.info('the chain is visible again');
      state.hasIncident = true;
    } else {
      await alarms.raise('blind', '', `blind: invoices are created, nothing is confirmed or expired: ${reason}`);
    }
    state.isBlind = reason !== null;
  };
  const onFailure = async (error: unknown, lease: Lease) => {
    const code = error instanceof AppError ? error.code : 'INTERNAL';
    metrics.watcherFailures.inc({ network, code });
    // By its own clock a process only waits: the renewal that is late may still come in time.
    if (code === 'LEASE_LOST' && state.lease === lease && isLeader()) loseLease();
    if (!isLeader()) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (code === 'BLOCK_UNVERIFIABLE') {
      await alarms.raise('unverifiable-block', '', reason);
      state.hasIncident = true;
    }
    if (NOT_ABOUT_THE_CHAIN.has(code)) blindness.forgetFailures();
    else blindness.onFailure(reason);
    await tellBlindness();
    await tellStatus();
  };
  const loseLease = () => {
    state.lease = null;
    follower.reset();
  };

  const renewal = startLoop({
    name: `lease of ${network}`,
    log,
    maxPauseMs: renewMs,
    run: async () => {
      const askedMs = performance.now();
      if (state.lease === null) state.lease = await acquireLease(deps.db, watcherLease(network), deps.holder, leaseMs);
      else if (!(await renewLease(deps.db, state.lease, leaseMs))) loseLease();
      if (state.lease === null) return renewMs / ASKS_PER_RENEWAL;
      state.leaseUntilMs = askedMs + leaseMs;
      return renewMs;
    },
  });
  const following = startLoop({
    name: `watcher of ${network}`,
    log,
    maxPauseMs: MAX_PAUSE_MS,
    run: async (isStopping) => {
      const { lease } = state;
      if (lease === null || !isLeader()) return Math.min(deps.blockMs, renewMs / ASKS_PER_RENEWAL);
      try {
        await begin(lease);
        const halt = await findHalt(db, network);
        if (halt !== null) throw new AppError('CHAIN_HALTED', `the watcher is halted: ${halt.reason}`);
        await alarms.calm('halted');
        const { pauseMs, examinedAgeMs } = await follower.step(lease, isStopping);
        noteHead();
        blindness.onLook(examinedAgeMs);
        await tellBlindness();
        await tellStatus();
        return pauseMs;
      } catch (error) {
        // Stopping destroys the request under way, which says nothing about the node.
        if (isStopping()) return 0;
        await onFailure(error, lease);
        // The log tells of these once, as an alarm; the pool has its own pauses.
        const code = error instanceof AppError ? error.code : 'INTERNAL';
        if (code === 'NO_NODE' || code === 'CHAIN_HALTED') return Math.max(MIN_WAIT_MS, deps.blockMs / LOOKS_PER_BLOCK);
        throw error;
      }
    },
  });
  return {
    isLeader,
    stop: async () => {
      const ended = following.stop();
      // Ends the request under way, so that stopping does not wait for a node that hangs.
      await pool.close();
      await ended;
      await renewal.stop();
      if (state.lease !== null) await releaseLease(deps.db, state.lease).catch(() => undefined);
    },
  };
}
