import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HARMLESS } from '../tampering/harmless.ts';
import { casesOf, type Outcome, PoisonWorld, type Result, runCases } from '../tampering/poison.ts';

describe.each(['warn', 'require'] as const)('with seals in the mode %s', (mode) => {
  const world = new PoisonWorld();
  beforeAll(() => world.open(mode));
  afterAll(() => world.close());

  test('no extreme, next or borrowed value of a number or time stops another project, and none is silent', {
    timeout: 3_600_000,
  }, async () => {
    const columns = await world.columns();
    const results = await runCases(world, casesOf(columns), ({ table, column }) => `${table}.${column}` in HARMLESS);
    const counts: Record<Outcome | 'silent', number> = { prevented: 0, alarm: 0, harmless: 0, silent: 0 };
    const outcomes = results.map((result) => ({ result, outcome: outcomeOf(result) }));
    for (const { outcome } of outcomes) counts[outcome] += 1;
    console.log(`${mode}: ${columns.length} columns, ${results.length} writes: ${JSON.stringify(counts)}`);
    expect(
      outcomes.flatMap(({ result, outcome }) =>
        outcome === 'silent' ? [`${result.table}.${result.column} = ${result.value}`] : [],
      ),
    ).toEqual([]);
    const names = new Set(columns.map(({ table, column }) => `${table}.${column}`));
    expect(Object.keys(HARMLESS).filter((name) => !names.has(name))).toEqual([]);
  });
});

function outcomeOf(result: Result): Outcome | 'silent' {
  if ('refusedBy' in result) return 'prevented';
  if (result.toldAfterMs !== null) return 'alarm';
  return `${result.table}.${result.column}` in HARMLESS ? 'harmless' : 'silent';
}
