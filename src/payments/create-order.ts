import { type CreateDeps, type Created, type CreateInput, createInvoice, findEarlier } from './create-invoice.ts';
import type { Relief } from './relief.ts';
import type { LimitReached, UnpaidGate } from './unpaid-gate.ts';

export type OrderDeps = CreateDeps & { gate: UnpaidGate; relief: Relief };

export type Ordered = Created | ({ kind: 'limited' } & LimitReached);

/** Each round but the last found room that others then took, each for an invoice of theirs. */
const MAX_ROUNDS = 50;

/**
 * Creates an invoice within the project's limits of unpaid ones; where no payable amount is free, after addresses were derived, if they
 * can be. A repeat is answered whatever the limits: it creates nothing.
 */
export async function createOrder(deps: OrderDeps, input: CreateInput): Promise<Ordered> {
  const entered = await deps.gate.enter(input.projectId);
  if (entered.kind === 'limited') return (await findEarlier(deps, input)) ?? entered;
  try {
    for (let round = 1; ; round += 1) {
      const created = await createInvoice(deps, input);
      if (created.kind === 'created') deps.relief.noteCreated(input);
      if (created.kind !== 'amount-unavailable' || round === MAX_ROUNDS) return created;
      if (!(await deps.relief.relieve(input))) return created;
    }
  } finally {
    entered.leave();
  }
}
