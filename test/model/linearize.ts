import { judge } from './judge.ts';
import { cloneModel, type Model, type Operation, type Outcome } from './model.ts';

export type Step = { operation: Operation; outcome: Outcome };

/**
 * Finds an order of concurrent operations in which each outcome is right (Herlihy and Wing's linearizability). Returns the model
 * afterwards, or what contradicts every order. Searches depth first; six operations have 720 orders.
 */
export function linearize(model: Model, steps: readonly Step[]): { model: Model } | { wrong: string[] } {
  if (steps.length === 0) return { model };
  const wrong: string[] = [];
  for (const [index, step] of steps.entries()) {
    const next = cloneModel(model);
    const reason = judge(next, step.operation, step.outcome);
    if (reason !== null) {
      wrong.push(`${step.operation.kind}: ${reason}`);
      continue;
    }
    const rest = linearize(next, [...steps.slice(0, index), ...steps.slice(index + 1)]);
    if ('model' in rest) return rest;
    wrong.push(...rest.wrong);
  }
  return { wrong: [...new Set(wrong)] };
}

/**
 * Does the same for any number of creations. A repeat or a refusal changes nothing, so it's placed as soon as it's right. A creation is
 * placed once no remaining step saw a state without it. No other order needs to be tried.
 */
export function linearizeCreations(model: Model, steps: readonly Step[]): { model: Model } | { wrong: string[] } {
  let [now, left] = [model, steps];
  while (left.length > 0) {
    const wrong: string[] = [];
    const isNext = (step: Step) => {
      if (isCreation(step) && left.some((other) => isWithout(model, other, step))) return false;
      const next = cloneModel(now);
      const reason = judge(next, step.operation, step.outcome);
      if (reason === null) now = next;
      else wrong.push(reason);
      return reason === null;
    };
    const repeats = left.filter((step) => !isCreation(step) && isNext(step));
    const gone =
      repeats.length > 0
        ? repeats
        : [left.find((step) => isCreation(step) && isNext(step))].filter((step) => step !== undefined);
    if (gone.length === 0) return { wrong: [...new Set(wrong)] };
    left = left.filter((step) => !gone.includes(step));
  }
  return { model: now };
}

function isCreation({ outcome }: Step): boolean {
  return outcome.status === 201 && !outcome.isReplayed;
}

/** Whether a step's answer implies that the key or external id of a creation was still free. */
function isWithout(model: Model, { operation, outcome }: Step, { operation: created }: Step): boolean {
  if (operation.kind !== 'create' || created.kind !== 'create') return false;
  if (model.keys[operation.key]?.project !== model.keys[created.key]?.project) return false;
  const isOfKey = operation.idempotencyKey === created.idempotencyKey;
  if (outcome.conflict?.rule === 'externalId') return isOfKey;
  return outcome.code === 'AMOUNT_UNAVAILABLE' && (isOfKey || operation.externalId === created.externalId);
}
