import { expect, test } from 'vitest';
import { failureText, keepSeed } from '../simulation/seeds.ts';
import { minimise, type Outcome, simulate } from '../simulation/simulate.ts';
import { formatPlan, parsePlan } from '../simulation/world/plan.ts';

/** How many days to simulate, and the first seed. A day takes some minutes. */
const DAYS = Number(process.env['SIMULATED_DAYS'] ?? 1);
const FIRST_SEED = Number(process.env['SIMULATION_SEED'] ?? 1);
/** The duration of one world; the next one has a different shape. */
const WORLD_HOURS = 3;
const WORLDS = Math.max(1, Math.ceil((DAYS * 24) / WORLD_HOURS));
const WORLD_TIMEOUT_MS = 15 * 60_000;

test(`${DAYS} simulated days with every trouble keep every promise`, {
  timeout: WORLDS * WORLD_TIMEOUT_MS,
}, async () => {
  const total = new Map<string, number>();
  const broken: Outcome[] = [];
  for (let world = 0; world < WORLDS; world += 1) {
    const outcome = await simulate(parsePlan(`${FIRST_SEED + world} ${WORLD_HOURS * 60}`));
    const { troubles, ...counts } = outcome.counts;
    for (const [name, count] of Object.entries({ ...counts, ...troubles })) {
      total.set(name, (total.get(name) ?? 0) + count);
    }
    say(`${formatPlan(outcome.plan)}: ${counts.transfers} transfers, ${outcome.violations.length} violations`);
    if (outcome.violations.length === 0) continue;
    say(failureText(outcome.plan, outcome.violations));
    const smallest = await minimise(outcome, say);
    keepSeed(smallest.plan, smallest.violations);
    broken.push(smallest);
  }
  say(`${(WORLDS * WORLD_HOURS) / 24} days in ${WORLDS} worlds, ${broken.length} of them broke promises`);
  for (const [name, count] of total) say(`  ${name}: ${count}`);
  expect(broken.map(({ plan, violations }) => failureText(plan, violations))).toEqual([]);
});

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
