import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { markChecksDue } from '../../store/chain/balance-checks.ts';
import { type EnergyPriceSeen, saveChainStatus } from '../../store/chain/status.ts';
import type { Database } from '../../store/db/database.ts';
import { ENERGY_PRICE } from '../nodes/ask-energy-price.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import type { Alarms } from './alarms.ts';
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
