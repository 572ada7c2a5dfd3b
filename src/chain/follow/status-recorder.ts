import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { markChecksDue } from '../../store/chain/balance-checks.ts';
import { saveChainStatus } from '../../store/chain/status.ts';
import type { Database } from '../../store/db/database.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import type { Alarms } from './alarms.ts';
import { createEnergyPrice } from './energy-price.ts';
import type { Follower } from './follower.ts';

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
export function createStatusRecorder({ db, network, pool, alarms, now, isLeader, status, blindReason }: StatusDeps): {
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
