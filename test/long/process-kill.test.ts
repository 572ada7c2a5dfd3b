import { expect, test } from 'vitest';
import { createDice } from '../processes/dice.ts';
import { FAILPOINTS, type Failpoint, FIRST_START_FAILPOINTS, nameOf } from '../processes/failpoint.ts';
import { killFirstStarts } from '../processes/first-start.ts';
import { type KillFigures, runKillLoop } from '../processes/kill-loop.ts';

/** `KILL_CYCLES=1000 KILL_SEED=7 npx vitest run --config test/long/long.config.ts process-kill` */
const CYCLES = Number(process.env['KILL_CYCLES'] ?? 220);
const SEED = Number(process.env['KILL_SEED'] ?? Date.now() % 1_000_000);
/** Each life takes two or three seconds; one that isn't killed takes twelve. */
const LIMIT_MS = 300_000 + CYCLES * 15_000;

test(
  `killed ${CYCLES} times, at every named place and at random, it loses no acknowledged invoice and does nothing twice (seed ${SEED})`,
  async () => {
    const figures = await runKillLoop({
      seed: SEED,
      lives: drawLives(),
      honestEvery: 20,
      postgresEvery: 4,
      hurriesInvoices: false,
    });
    print(figures);
    expect(figures.violations).toEqual([]);
    const unreached = FAILPOINTS.map(nameOf).filter((name) => !figures.deaths.has(name));
    expect(CYCLES < 3 * FAILPOINTS.length ? [] : unreached).toEqual([]);
  },
  LIMIT_MS,
);

/** Returns every place in turn, each time at another of its occurrences, with a kill at a random time after every third. */
function drawLives(): (Failpoint | null)[] {
  const dice = createDice(SEED);
  return Array.from({ length: CYCLES }, (_, index) => {
    if (index % 4 === 3) return null;
    const place = Math.floor(index * 0.75);
    const failpoint = FAILPOINTS[place % FAILPOINTS.length];
    // The first round uses the first occurrence, because some are rare; later rounds also use the second.
    const nth = place < FAILPOINTS.length ? 1 : 1 + dice.below(2);
    return failpoint === undefined ? null : { ...failpoint, nth };
  });
}

function print(figures: KillFigures): void {
  const { deaths, missed, violations, ...counts } = figures;
  const lines = [...deaths].sort().map(([name, times]) => `  ${String(times).padStart(4)}  ${name}`);
  process.stdout.write(
    `\nkill loop, seed ${SEED}, ${CYCLES} cycles: ${JSON.stringify(counts)}\ndied:\n${lines.join('\n')}\n` +
      `not reached in a life: ${missed.length} (${[...new Set(missed)].sort().join(', ')})\nviolations: ${violations.length}\n`,
  );
}

test(
  'a first start that was killed anywhere is finished by the next one',
  async () => {
    const dice = createDice(SEED);
    const named = FIRST_START_FAILPOINTS.map((failpoint) => ({ failpoint, diesMs: 60_000, killsPostgres: false }));
    const others = Array.from({ length: 8 }, (_, index) => ({
      failpoint: null,
      diesMs: dice.below(1500),
      killsPostgres: index % 2 === 0,
    }));
    const { deaths, missed, violations } = await killFirstStarts([...named, ...others]);
    process.stdout.write(`\nfirst starts, seed ${SEED}: died ${deaths.join(', ')}; violations: ${violations.length}\n`);
    expect(missed).toEqual([]);
    expect(violations).toEqual([]);
  },
  LIMIT_MS,
);
