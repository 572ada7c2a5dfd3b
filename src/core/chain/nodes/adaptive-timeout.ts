import type { Question } from './question.ts';

/** Extends the timeout of a question after a late answer, for all nodes of a network. */
export type AdaptiveTimeout = {
  /** Call this when an answer was late. The next answer to the same question, from any node, may take twice as long. */
  grow(question: Question<unknown>): void;
  /** Call this when the question was answered. */
  reset(question: Question<unknown>): void;
  /** Returns the timeout for the answer, in milliseconds. */
  longer(question: Question<unknown>, limitMs: number): number;
};

const MOST = 64;
/** A large block takes about a minute over a slow connection. A hanging node costs at most this long, once. */
const MAX_LIMIT_MS = 120_000;
/** Maximum number of questions with an extended timeout. There are usually few, because a block is retried until it's read. */
const MAX_KEPT = 200;

/**
 * Extends timeouts per question, because a large answer is large on every node, while all other answers stay small. That way a hanging node
 * is still detected quickly, and another node can answer in time if this one can't.
 */
export function createAdaptiveTimeout(): AdaptiveTimeout {
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
