import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { EnergyPriceSeen } from '../../store/chain/status.ts';
import { ENERGY_PRICE } from '../nodes/ask-energy-price.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';

/** The network votes on it now and then, and what it decided is in force from the next period of six hours on. */
const REFRESH_MS = 60 * 60_000;
/** Blocks come first after a start. */
const FIRST_MS = 15_000;
/** One operator could be wrong; if two differ, nobody knows. */
const OPERATORS = 2;

/** What energy costs, by the nodes. Only an estimate for payers is made of it. */
export type KnownEnergyPrice = {
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
