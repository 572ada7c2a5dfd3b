import { AppError } from '../../domain/errors.ts';
import { whileLeading } from '../../payments/watching.ts';
import { startLoop } from '../../runtime/loop.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import { findHalt } from '../../store/chain/cursor.ts';
import type { Lease } from '../../store/chain/leases.ts';
import { findRememberedPauses } from '../../store/chain/status.ts';
import { createAlarms } from './alarms.ts';
import { createFollower } from './follower.ts';
import type { FollowDeps } from './following.ts';
import { forgetGauges } from './forget-gauges.ts';
import { type HeldLease, holdLease, type LeaseOptions } from './hold-lease.ts';
import { createStatusRecorder } from './status-recorder.ts';
import { createVisibility } from './visibility.ts';

export type WatcherDeps = Omit<FollowDeps, 'alarms'> & LeaseOptions;

export type Watcher = {
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
