import { expect, inject, test } from 'vitest';
import { failureText, keepSeed } from './seeds.ts';
import { minimise, simulate } from './simulate.ts';
import { formatPlan, type Plan, parsePlan, shapeOf } from './world/plan.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** How long each world of `seeds-*.test.ts` has its troubles. */
    simulatedMinutes: number;
    /** How many worlds each of these files has. */
    simulatedWorlds: number;
  }
}

/** A simulated hour takes seconds, and the smallest failing plan is looked for when one fails. */
const TIMEOUT_MS = 300_000;

/** One test a plan. One that fails is made as small as possible, joins `seeds.txt`, and is told. */
export function keepsPromises(plans: readonly Plan[]): void {
  test.each(plans.map((plan) => [formatPlan(plan), plan] as const))(
    'simulation %s keeps every promise',
    { timeout: TIMEOUT_MS },
    async (_, plan) => {
      const outcome = await simulate(plan);
      if (outcome.violations.length === 0) return;
      // What fails once need not fail again: much is timed by PostgreSQL.
      process.stdout.write(`${failureText(plan, outcome.violations)}\n`);
      const smallest = await minimise(outcome, (text) => process.stdout.write(`${text}\n`));
      keepSeed(smallest.plan, smallest.violations);
      expect.fail(failureText(smallest.plan, smallest.violations));
    },
  );
}

/**
 * Worlds with a quicker chain or more processes take up to five times as long, and where a round of the producers takes longer, so does
 * the rest until everything is irreversible. `npm run test:long` has them as well.
 */
const SLOW_MS = 30_000;
const MAX_PROCESSES = 3;
const MAX_ROUND_MS = 27 * SLOW_MS;

/** Worlds with every trouble, for the file of this number, from 0. */
export function worlds(file: number): Plan[] {
  const [minutes, count] = [inject('simulatedMinutes'), inject('simulatedWorlds')];
  const from = file * count;
  const plans: Plan[] = [];
  for (let seed = 1; plans.length < from + count; seed += 1) {
    const { slotMs, producers, processes } = shapeOf(seed);
    const isQuick = slotMs >= SLOW_MS && producers * slotMs <= MAX_ROUND_MS && processes.length <= MAX_PROCESSES;
    if (isQuick) plans.push(parsePlan(`${seed} ${minutes}`));
  }
  return plans.slice(from);
}
