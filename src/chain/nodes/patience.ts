import type { Question } from './question.ts';

/** How much longer than usual the nodes of a network are waited for, where a whole answer to a question did not come in time. */
export type Patience = {
  /** The answer was late: the next one to this question, of whichever node, may take twice as long. */
  grow(question: Question<unknown>): void;
  /** It was answered. */
  reset(question: Question<unknown>): void;
  /** The limit for an answer, in milliseconds. */
  longer(question: Question<unknown>, limitMs: number): number;
};

const MOST = 64;
/** A large block over a slow line takes a minute; a node that hangs costs no more than this once. */
const MAX_LIMIT_MS = 120_000;
/** Questions that wait for a whole answer: few, for a block is not left before it is read. */
const MAX_KEPT = 200;

/**
 * It counts by question, for a large answer is large on every node, and every other answer is as small as ever: a node that hangs is
 * found out as quickly, and another node may show in time the answer that this one cannot.
 */
export function createPatience(): Patience {
  const factors = new Map<string, number>();
  return {
    grow: (question) => {
      const name = nameOf(question);
      const factor = Math.min(MOST, (factors.get(name) ?? 1) * 2);
      factors.delete(name);
      factors.set(name, factor);
      if (factors.size > MAX_KEPT) factors.delete(factors.keys().next().value ?? name);
    },
    reset: (question) => void (factors.size > 0 && factors.delete(nameOf(question))),
    longer: (question, limitMs) => {
      const factor = factors.size === 0 ? 1 : (factors.get(nameOf(question)) ?? 1);
      return Math.max(limitMs, Math.min(MAX_LIMIT_MS, limitMs * factor));
    },
  };
}

function nameOf({ http: { path, body } }: Question<unknown>): string {
  return `${path} ${JSON.stringify(body)}`;
}
