import fc from 'fast-check';
import type { Json } from '../support/service.ts';
import { at, type Command, key, note, pick, type Tally } from './command.ts';
import { judge, mayDo } from './judge.ts';
import { judgePage } from './judge-page.ts';
import { type ListOperation, type Model, pass, type Status, type TransferKind } from './model.ts';

/** `after` and `since` choose existing items. */
export type ListPlan = { key: number; limit: number; after: number | null } & (
  | { kind: 'list'; status: Status | null; since: number | null }
  | { kind: 'transfers'; only: TransferKind | null }
);

export const pageLimit = fc.constantFrom(1, 3, 100, 100);
const paged = { key, limit: pageLimit, after: fc.option(pick) };
export const lists: fc.Arbitrary<ListPlan> = fc.oneof(
  fc.record({
    ...{ kind: fc.constant('list' as const), ...paged, since: fc.option(pick, { freq: 1 }) },
    status: fc.option(fc.constantFrom('PENDING' as const, 'EXPIRED' as const, 'PAID' as const)),
  }),
  fc.record({
    ...{ kind: fc.constant('transfers' as const), ...paged },
    only: fc.option(fc.constantFrom('matched' as const, 'duplicate' as const, 'unmatched' as const)),
  }),
);

/** By then, a key has another token. */
const TOKEN_MS = 1_000_000;

/** Builds the operation from the existing items in the key's project. */
export function toListOperation(plan: ListPlan, { keys, invoices, transfers }: Model): ListOperation {
  const { key, limit } = plan;
  const project = keys[key]?.project ?? -1;
  if (plan.kind === 'transfers') {
    const told = transfers[project]?.flatMap(({ id }) => id ?? []) ?? [];
    return { kind: 'transfers', key, limit, only: plan.only, after: picked(told, plan.after) };
  }
  const own = [...invoices.values()].filter((each) => each.project === project);
  const createdAfterMs = picked(own, plan.since)?.createdMs ?? null;
  return {
    ...{ kind: 'list', key, limit, status: plan.status, createdAfterMs },
    after: picked([...invoices.keys()], plan.after),
  };
}

function picked<Item>(items: readonly Item[], index: number | null): Item | null {
  return (index === null ? null : at(items, index)) ?? null;
}

/** Reads a list one item at a time, because most runs have few of a kind. All pages together must equal a page without a limit. */
export function walk(tally: Tally, plan: ListPlan): Command {
  return {
    check: ({ model }) => model.keys[plan.key]?.isRevoked === false && mayDo(model, plan),
    run: async ({ model }, world) => {
      const first = { ...toListOperation(plan, model), limit: 1, after: null };
      const data: Json[] = [];
      let pages = 0;
      for (let after: string | null | undefined = null; after !== undefined; pages += 1) {
        world.wait(TOKEN_MS);
        pass(model, TOKEN_MS);
        const operation = { ...first, after };
        const outcome = await world.run(operation);
        const wrong = judge(model, operation, outcome);
        if (wrong !== null) throw new Error(`${wrong}: ${JSON.stringify({ operation, outcome })}`);
        data.push(...(outcome.page?.data ?? []));
        after = outcome.page?.next ?? undefined;
      }
      const whole = { ...first, limit: Number.POSITIVE_INFINITY };
      const wrong = judgePage(model, model.keys[plan.key]?.project ?? -1, whole, { data, next: null });
      if (wrong !== null) throw new Error(`the pages together: ${wrong}: ${JSON.stringify({ first, data })}`);
      note(tally, `walk ${plan.kind}, ${pages === 1 ? 'one page' : 'pages'}`);
    },
    toString: () => `walk ${JSON.stringify(plan)}`,
  };
}
