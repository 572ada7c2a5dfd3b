import type { Network } from '../../domain/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { startLoop } from '../../runtime/loop.ts';
import type { LoopHealth } from '../../runtime/loop-health.ts';
import { acquireLease, type Lease, releaseLease, renewLease, watcherLease } from '../../store/chain/leases.ts';
import type { Database } from '../../store/db/database.ts';

export type LeaseOptions = {
  /** Names this process in the lease. */
  holder: string;
  /** A crashed watcher's successor starts after this long at most, by the database's clock; 8,000 when absent. */
  leaseMs?: number;
  loops?: LoopHealth;
};

export type HeldLease = {
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
export function holdLease(
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
