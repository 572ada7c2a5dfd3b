import fc from 'fast-check';
import { EVENT_TYPES } from '../../src/core/domain/event.ts';
import { at, type Command, key, note, pick, type Tally } from './command.ts';
import { type EndpointPlan, endpoints, toEndpointOperation } from './endpoint-commands.ts';
import { linearize } from './linearize.ts';
import { type ListPlan, lists, pageLimit, toListOperation, walk } from './list-commands.ts';
import { LIFETIME_MS, type Model, type ModelInvoice, type Operation, pass, type Said } from './model.ts';

/** Two of them are prices, one and the same. */
const AMOUNTS = [
  ...['25.00', '25', '25.000000', '25.00005', '0.000001', '999999999999.999999'],
  ...['CNY 180', 'CNY 180.00', 'CNY 0.07'],
] as const;
/** Few enough to collide. */
const [KEY_SLOTS, ID_SLOTS] = [6, 6];
const MOST_AT_ONCE = 5;
const SHORTEST_MS = 300_000;

/** An operation before it's known which invoices and addresses exist. */
type Plan =
  | {
      kind: 'create';
      key: number;
      idempotency: number;
      external: number;
      amount: string;
      isInvalid: boolean;
      said: Said;
    }
  | { kind: 'fresh'; key: number; amount: string }
  | { kind: 'read' | 'find' | 'withdraw'; key: number; pick: number }
  | { kind: 'feed'; key: number; limit: number; types: string[] | null }
  | ListPlan
  | { kind: 'order'; adapter: number; external: number; amount: string; isInvalid: boolean; isForged: boolean }
  | { kind: 'trade'; adapter: number; pick: number }
  | { kind: 'rate'; adapter: number; isOld: boolean }
  | { kind: 'disable'; adapter: number }
  | EndpointPlan
  | { kind: 'revoke'; key: number }
  | { kind: 'retire' | 'activate'; pick: number };

const amount = fc.constantFrom(...AMOUNTS);
const adapter = fc.nat(2);
const seldom = fc.nat(9).map((n) => n === 0);
const types = fc.option(fc.subarray([...EVENT_TYPES], { minLength: 1 }), { freq: 1 });

const said: fc.Arbitrary<Said> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        // From the least to one more than allowed.
        expiresInSeconds: fc.constantFrom(300, 900, LIFETIME_MS / 1000, LIFETIME_MS / 1000 + 1),
        returnUrl: fc.constantFrom('http://localhost/a', 'http://localhost/{invoiceId}'),
        description: fc.constantFrom('Tea', 'Tee'),
        metadata: fc.constantFrom({ a: '1' }, { b: '1', a: '1' }),
      },
      { requiredKeys: [] },
    ),
  },
);

const plans: fc.Arbitrary<Plan> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      ...{ kind: fc.constant('create' as const), key, amount },
      ...{ idempotency: fc.nat(KEY_SLOTS - 1), external: fc.nat(ID_SLOTS - 1) },
      isInvalid: seldom,
      said,
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('fresh' as const), key, amount }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('read' as const, 'find' as const, 'withdraw' as const), key, pick }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('feed' as const), key, limit: pageLimit, types }) },
  { weight: 3, arbitrary: lists },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ kind: fc.constant('order' as const), adapter, external: fc.nat(ID_SLOTS - 1) },
      ...{ amount: fc.constantFrom('180', '180.00', '0.01', '36.5'), isInvalid: seldom, isForged: seldom },
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('trade' as const), adapter, pick }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rate' as const), adapter, isOld: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('disable' as const), adapter }) },
  { weight: 5, arbitrary: endpoints },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('revoke' as const), key }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('retire' as const, 'activate' as const), pick }) },
);

/** Sequential and parallel operations, events on the chain, and time. */
export function commandArbitraries(tally: Tally): fc.Arbitrary<Command>[] {
  const one = plans.map((plan) => atOnce(tally, [plan]));
  const some = fc.array(plans, { minLength: 2, maxLength: MOST_AT_ONCE }).map((each) => atOnce(tally, each));
  // The same request several times at once, like an integrator's retries.
  const same = fc
    .tuple(plans, fc.integer({ min: 2, max: MOST_AT_ONCE }))
    .map(([plan, times]) => atOnce(tally, Array<Plan>(times).fill(plan)));
  return [
    ...[one, one, some, same],
    fc.tuple(pick, fc.boolean()).map(([picked, isShort]) => pay(tally, picked, isShort)),
    lists.map((plan) => walk(tally, plan)),
    fc.constantFrom(SHORTEST_MS, LIFETIME_MS).map((ms) => expire(tally, ms)),
    // Enough time for keys to use endpoints again.
    fc.constant(wait(tally, 60_000_000)),
    fc.integer({ min: 1, max: 10 }).map((tokens) => wait(tally, tokens * 1_000_000)),
  ];
}

let fresh = 0;

function toOperation(plan: Plan, model: Model): Operation {
  const { invoices, addresses } = model;
  switch (plan.kind) {
    case 'create': {
      const { key, amount, isInvalid, said } = plan;
      const named = { idempotencyKey: `key-${plan.idempotency}`, externalId: `order-${plan.external}` };
      return { kind: 'create', key, amount, isInvalid, said, ...named };
    }
    case 'fresh': {
      fresh += 1;
      const { key, amount } = plan;
      const named = { idempotencyKey: `fresh-${fresh}`, externalId: `fresh-${fresh}` };
      return { kind: 'create', key, amount, isInvalid: false, ...named };
    }
    case 'read':
    case 'withdraw':
      return { kind: plan.kind, key: plan.key, invoiceId: at([...invoices.keys()], plan.pick) ?? 'inv_none' };
    case 'find': {
      const externalId = at([...invoices.values()], plan.pick)?.externalId ?? `order-${plan.pick % ID_SLOTS}`;
      return { kind: 'find', key: plan.key, externalId };
    }
    case 'feed':
      return plan;
    case 'list':
    case 'transfers':
      return toListOperation(plan, model);
    case 'order':
      return { ...plan, orderId: `order-${plan.external}` };
    case 'trade':
      return { ...plan, invoiceId: at([...invoices.keys()], plan.pick) ?? 'inv_none' };
    case 'rate':
    case 'disable':
      return plan;
    case 'endpoint':
      return toEndpointOperation(plan, model);
    case 'revoke':
      return { kind: 'revoke', key: plan.key };
    case 'retire':
    case 'activate':
      return { kind: plan.kind, address: at([...addresses.keys()], plan.pick) ?? '' };
  }
}

/** Runs operations in parallel. The result must be possible in some sequential order. */
function atOnce(tally: Tally, each: readonly Plan[]): Command {
  return {
    check: () => true,
    run: async (box, world) => {
      const operations = each.map((plan) => toOperation(plan, box.model));
      const outcomes = await Promise.all(operations.map((operation) => world.run(operation)));
      const steps = operations.map((operation, index) => ({ operation, outcome: outcomes[index] as never }));
      for (const [index, { kind }] of operations.entries()) {
        const { status, code } = outcomes[index] ?? {};
        note(tally, `${kind} ${each.length === 1 ? 'alone' : 'at once'} ${code ?? (status || 'done')}`);
      }
      const result = linearize(box.model, steps);
      if ('wrong' in result) {
        throw new Error(
          `no order explains what came:\n${result.wrong.join('\n')}\n${JSON.stringify(steps, showBigInt)}`,
        );
      }
      box.model = result.model;
      // A failed one changes nothing, and an accepted one changes one thing.
      const [stored, known] = [await world.countInvoices(), box.model.invoices.size];
      if (stored !== known) throw new Error(`${stored} invoices are stored, and ${known} were acknowledged`);
    },
    toString: () => `at once: ${JSON.stringify(each)}`,
  };
}

function pay(tally: Tally, picked: number, isShort: boolean): Command {
  return {
    check: ({ model }) => model.invoices.size > 0 && isPayable(at([...model.invoices.values()], picked), isShort),
    run: async ({ model }, world) => {
      const invoice = at([...model.invoices.values()], picked);
      if (invoice === undefined) return;
      const { project, address: to, payableMicro, invoiceId, status } = invoice;
      const amountMicro = isShort ? payableMicro - 1n : payableMicro;
      const kind = isShort ? 'unmatched' : status === 'PAID' ? 'duplicate' : 'matched';
      const { txId, passedMs } = await world.pay(project, to, amountMicro);
      pass(model, passedMs);
      model.transfers[project]?.push({ kind, txId, to, amountMicro, invoiceId: isShort ? null : invoiceId, id: null });
      if (kind === 'matched') model.invoices.set(invoiceId, { ...invoice, status: 'PAID' });
      await world.expireDue(model);
      note(tally, `pay ${isShort ? 'one micro short' : kind === 'duplicate' ? 'again' : status}`);
    },
    toString: () => `pay ${picked}${isShort ? ' one micro short' : ''}`,
  };
}

/** The devnet doesn't have the largest amounts, and nothing is less than one micro-USDT. */
function isPayable(invoice: ModelInvoice | undefined, isShort: boolean): boolean {
  return invoice !== undefined && invoice.payableMicro < 1_000_000_000n && invoice.payableMicro > (isShort ? 1n : 0n);
}

/** Lets time pass on the chain. */
function expire(tally: Tally, ms: number): Command {
  return {
    check: ({ model }) => [...model.invoices.values()].some(({ status }) => status === 'PENDING'),
    run: async ({ model }, world) => {
      pass(model, await world.jump(ms));
      await world.expireDue(model);
      const isAny = [...model.invoices.values()].some(({ status }) => status === 'PENDING');
      note(tally, `expire${isAny ? ' some' : ''}`);
    },
    toString: () => `expire ${ms} ms`,
  };
}

function wait(tally: Tally, ms: number): Command {
  return {
    check: () => true,
    run: async ({ model }, world) => {
      world.wait(ms);
      pass(model, ms);
      note(tally, 'wait');
    },
    toString: () => `wait ${ms} ms`,
  };
}

function showBigInt(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
