import { check } from './invariants/all.ts';
import { formatPlan, type Plan, type Trouble } from './world/plan.ts';
import { createWorld, type World, type WorldOptions } from './world/world.ts';

export type Outcome = {
  plan: Plan;
  /** A line for each broken promise, with the time at which it was found. */
  violations: readonly string[];
  counts: ReturnType<World['counts']>;
};

const MINUTE_MS = 60_000;
/** Queues and lag must be settled this long after the last fault. */
const DRAIN_MS = MINUTE_MS;
/** Irreversible blocks may be read only every eighth block, and the cursor needs some more to get there. */
const IDLE_SLOTS = 12;
const REST_MINUTES = 16;

/** Simulates a plan. Checks the promises after each minute, and all of them once the troubles are over. */
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
      // Enough time for every transaction to become irreversible, and for pending notifications.
      await world.run(Math.max((producers + IDLE_SLOTS) * slotMs, REST_MINUTES * MINUTE_MS));
      await look('quiet', 'at rest');
    }
    return { plan, violations, counts: world.counts() };
  } finally {
    await world.stop();
  }
}

/** How many smaller plans to try. */
const MAX_TRIES = 30;

/** Returns the smallest plan found that still breaks a promise: first fewer troubles, then less time. */
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
