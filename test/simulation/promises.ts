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

/**
 * A simulated hour takes seconds, or minutes on a machine that is busy with other work. After a failure, the smallest failing plan is
 * searched for.
 */
const TIMEOUT_MS = 1_200_000;

/** Creates one test for each plan. A failing plan is made as small as possible, added to `seeds.txt`, and reported. */
export function keepsPromises(plans: readonly Plan[]): void {
  test.each(plans.map((plan) => [formatPlan(plan), plan] as const))(
    'simulation %s keeps every promise',
    { timeout: TIMEOUT_MS },
    async (_, plan) => {
      const outcome = await simulate(plan);
      if (outcome.violations.length === 0) return;
      // A failure may not repeat, because much of the timing depends on PostgreSQL.
      process.stdout.write(`${failureText(plan, outcome.violations)}\n`);
      const smallest = await minimise(outcome, (text) => process.stdout.write(`${text}\n`));
      keepSeed(smallest.plan, smallest.violations);
      expect.fail(failureText(smallest.plan, smallest.violations));
    },
  );
}

/**
 * Worlds with a faster chain or more processes take up to five times as long. A longer round of producers also delays the rest until
 * everything is irreversible. `npm run test:long` includes them.
 */
const SLOW_MS = 30_000;
const MAX_PROCESSES = 3;
const MAX_ROUND_MS = 27 * SLOW_MS;

/** Returns worlds with every trouble for the file of this number, counted from 0. */
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
