import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { linearizeCreations } from './linearize.ts';
import type { Operation } from './model.ts';
import { createWorld, type ModelService, startModelService } from './world.ts';

const AT_ONCE = 200;
/** Few enough that nearly all collide, and enough to use up some amounts and not others. */
const SLOTS = 40;
const AMOUNTS = ['25.00', '25', '25.00005', '3', '7.5', '999999999999.999999', '12', '12.000001'];

const creation: fc.Arbitrary<Operation> = fc
  .record({
    slot: fc.nat(SLOTS - 1),
    other: fc.nat(SLOTS - 1),
    isCrossed: fc.nat(4),
    amount: fc.nat(7),
    key: fc.nat(5),
  })
  .map(({ slot, other, isCrossed, amount, key }) => ({
    ...{ kind: 'create' as const, key, isInvalid: false },
    idempotencyKey: `key-${slot}`,
    externalId: `order-${isCrossed === 0 ? other : slot} "\\{,}" NULL`,
    // Most repeat their request.
    amount: AMOUNTS[isCrossed === 1 ? amount : slot % AMOUNTS.length] ?? '1',
  }));
/** Each has a new key, so that only amounts are scarce. */
const fresh: fc.Arbitrary<Operation> = fc
  .record({ id: fc.uuid(), amount: fc.constantFrom('25.00', '25.00005', '3'), key: fc.nat(5) })
  .map(({ id, amount, key }) => ({
    ...{ kind: 'create', key, amount, isInvalid: false, idempotencyKey: `key-${id}`, externalId: `order-${id}` },
  }));

let service: ModelService;
beforeAll(async () => {
  // Alone in its process, the API allows 128 of them to begin at once.
  service = await startModelService({ roles: ['api'], rateLimit: { perSecond: 1, burst: 10_000 } });
});
afterAll(() => service.stop());

test.each([
  ['of equal keys, external ids and amounts', creation, [1, 2]],
  ['of equal amounts', fresh, [3]],
])(
  '200 creations at once %s go as if they came one by one, and nothing else is stored',
  async (_, operations, seeds) => {
    for (const seed of seeds) {
      const world = await createWorld(service);
      const asked = fc.sample(operations, { seed, numRuns: AT_ONCE });
      const outcomes = await Promise.all(asked.map((operation) => world.run(operation)));
      const steps = asked.map((operation, index) => ({ operation, outcome: outcomes[index] as never }));
      const result = linearizeCreations(world.model, steps);
      if ('wrong' in result) throw new Error(`no order explains what came:\n${result.wrong.join('\n')}`);
      expect(await world.countInvoices()).toBe(result.model.invoices.size);
      expect(result.model.invoices.size).toBeGreaterThan(20);
      const codes = new Set(outcomes.map(({ code }) => code));
      expect(codes).toEqual(
        new Set([null, 'AMOUNT_UNAVAILABLE', ...(operations === creation ? ['IDEMPOTENCY_CONFLICT'] : [])]),
      );
    }
  },
);
