import { judge } from './judge.ts';
import { cloneModel, type Model, type Operation, type Outcome } from './model.ts';

export type Step = { operation: Operation; outcome: Outcome };

/**
 * Whether operations that ran at once have an order in which each outcome is right (Herlihy and Wing's linearizability). Returns the model after
 * it, or what stood against every order. Tries them depth first; of up to six operations there are 720.
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
