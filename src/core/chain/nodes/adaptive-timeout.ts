import type { Question } from './question.ts';

/** Extends the timeout of a question for all nodes of a network after its answer was late. */
export type AdaptiveTimeout = {
  /** The answer was late. The next answer to this question, from any node, may take twice as long. */
  grow(question: Question<unknown>): void;
  /** The question was answered. */
  reset(question: Question<unknown>): void;
  /** The timeout of the answer, in milliseconds. */
  longer(question: Question<unknown>, limitMs: number): number;
};

const MOST = 64;
/** A large block over a slow connection takes a minute. A node that hangs costs at most this long, once. */
const MAX_LIMIT_MS = 120_000;
/** Questions with an extended timeout. There are few, because a block is retried until it's read. */
const MAX_KEPT = 200;

/**
 * Extends timeouts per question, because a large answer is large on every node, and all other answers stay small. So a hanging node is
 * still detected quickly, and another node may answer in time when this one can't.
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
