import { check } from './invariants/all.ts';
import { formatPlan, type Plan, type Trouble } from './world/plan.ts';
import { createWorld, type World, type WorldOptions } from './world/world.ts';

export type Outcome = {
  plan: Plan;
  /** A line for each broken promise, with when it was found. */
  violations: readonly string[];
  counts: ReturnType<World['counts']>;
};

const MINUTE_MS = 60_000;
/** The promise about queues and lag is for this long after the last fault. */
const DRAIN_MS = MINUTE_MS;
/** What is irreversible may be asked for every eighth block, and the cursor needs some more to get there. */
const IDLE_SLOTS = 12;
const REST_MINUTES = 16;

/** Lives through a plan. After each minute of it the promises are looked at, and all of them when the troubles are over. */
export async function simulate(plan: Plan, options: WorldOptions = {}): Promise<Outcome> {
  const world = await createWorld(plan, options);
  const violations: string[] = [];
  const look = async (when: 'step' | 'quiet', at: string) => {
    for (const line of await check(world.truth, when)) violations.push(`${at}: ${line}`);
  };
  try {
    for (let minute = 1; minute <= plan.minutes && violations.length === 0; minute += 1) {
      await world.run(MINUTE_MS);
      await look('step', `minute ${minute}`);
    }
    if (violations.length === 0) {
      world.calm();
      await world.run(DRAIN_MS);
      await look('step', 'a minute after the last fault');
      const { producers, slotMs } = world.shape;
      // Enough for everything that was sent to become irreversible, and for what waits to be told.
      await world.run(Math.max((producers + IDLE_SLOTS) * slotMs, REST_MINUTES * MINUTE_MS));
      await look('quiet', 'at rest');
    }
    return { plan, violations, counts: world.counts() };
  } finally {
    await world.stop();
  }
}

/** How often a smaller plan is tried. */
const MAX_TRIES = 30;

/** The smallest plan found that still breaks a promise: fewer troubles, then less time. */
export async function minimise(
  failing: Outcome,
  report: (text: string) => void,
  options: WorldOptions = {},
): Promise<Outcome> {
  let smallest = failing;
  let tries = 0;
  const attempt = async (plan: Plan): Promise<boolean> => {
    tries += 1;
    if (tries > MAX_TRIES) return false;
    const outcome = await simulate(plan, options);
    if (outcome.violations.length === 0) return false;
    smallest = outcome;
    report(`still fails: ${formatPlan(plan)}`);
    return true;
  };
  for (const trouble of failing.plan.troubles) {
    await attempt({ ...smallest.plan, troubles: without(smallest.plan.troubles, trouble) });
  }
  while (smallest.plan.minutes > 1) {
    if (!(await attempt({ ...smallest.plan, minutes: Math.floor(smallest.plan.minutes / 2) }))) break;
  }
  return smallest;
}

function without(troubles: ReadonlySet<Trouble>, left: Trouble): ReadonlySet<Trouble> {
  return new Set([...troubles].filter((trouble) => trouble !== left));
}
