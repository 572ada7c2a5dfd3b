import type { Invariant, Truth } from '../truth.ts';
import { CURSOR } from './cursor.ts';
import { EVENTS } from './events.ts';
import { feed } from './feed.ts';
import { type SqlInvariant, selectAll } from './from-sql.ts';
import { LEDGER } from './ledger.ts';
import { RESERVATIONS } from './reservations.ts';
import { SECLUSION } from './seclusion.ts';
import { STATUSES } from './statuses.ts';
import { WEBHOOKS } from './webhooks.ts';

/** Every promise that a simulated world must keep, by number. */
export const INVARIANTS: readonly Invariant[] = [
  ...RESERVATIONS,
  ...LEDGER,
  ...STATUSES,
  ...CURSOR,
  ...EVENTS,
  ...WEBHOOKS,
  ...SECLUSION,
].sort((one, other) => one.number - other.number);

const isSql = (invariant: Invariant): invariant is SqlInvariant => 'body' in invariant;

/** Those with a function in the database's witness schema. */
export const SQL_INVARIANTS: readonly SqlInvariant[] = INVARIANTS.filter(isSql);

const SELECT_STEP = selectAll(SQL_INVARIANTS.filter(({ when }) => when === 'step'));
const SELECT_QUIET = selectAll(SQL_INVARIANTS);
const OVER_MEMORY = INVARIANTS.map((invariant) => {
  const { number, title } = invariant;
  return { number, title, check: isSql(invariant) ? invariant.also : invariant.check };
});
const TITLES = new Map(INVARIANTS.map(({ number, title }) => [number, title]));

/** The chain only moves during a check if the world isn't paused for it. The check is then repeated. */
const MAX_ROUNDS = 10;

/**
 * Returns a line for each violation. `step` checks the promises that always hold, in two statements. `quiet` checks all of them, in a world
 * without faults and with empty queues.
 */
export async function check(truth: Truth, when: Invariant['when']): Promise<string[]> {
  for (let round = 1; ; round += 1) {
    const solid = truth.chain.solidNumber();
    await feed(truth);
    const rows = await truth.query(when === 'step' ? SELECT_STEP : SELECT_QUIET);
    if (truth.chain.solidNumber() !== solid && round < MAX_ROUNDS) continue;
    const violations = rows.map(({ number, detail }) => line(Number(number), String(detail)));
    if (when === 'quiet') {
      for (const { number, check: find } of OVER_MEMORY) {
        violations.push(...(await find(truth)).map((detail) => line(number, detail)));
      }
    }
    return violations;
  }
}

function line(number: number, detail: string): string {
  return `invariant ${number} (${TITLES.get(number)}): ${detail}`;
}
