import { AppError } from '../../domain/errors.ts';
import type { Question, Substitutable } from './question.ts';

/**
 * `maxBytes`: a limit for this call, below the question's own limit. `isOptional`: a stranger chose the question, so the node isn't paused
 * if the question may be at fault, for example if the answer is too large, too late or unreadable. `mayBeLarge`: the node isn't blamed for
 * an answer that is too large. `wantsBytes`: use gRPC, even if the node is normally asked over HTTP.
 */
export type AskOptions = {
  timeoutMs?: number;
  maxBytes?: number;
  isOptional?: boolean;
  mayBeLarge?: boolean;
  wantsBytes?: boolean;
};

export type Node = {
  /** The base URL. Its path may be a secret. */
  url: string;
  /** The node's name in logs and evidence, which contains no credentials, key or path. Unique among a pool's nodes. */
  origin: string;
  operator: string;
  /** Whether the node can return raw bytes. */
  hasBytes: boolean;
  /** Whether questions of this kind may be asked now. `bytes` means the separate gRPC API of a node that is normally asked over HTTP. */
  isOpenFor(kind: Substitutable): boolean;
  /** Pauses questions of this kind, because the answers couldn't be used. Each consecutive pause is longer. */
  setAside(kind: Substitutable, reason: string): void;
  /** The requests left for this UTC day, or `null` without a limit. */
  requestsLeft(): number | null;
  /**
   * Returns the answer, or throws `NODE_REFUSED`. If the node is paused or out of budget, throws immediately, without sending a request.
   */
  ask<Answer>(question: Question<Answer>, options?: AskOptions): Promise<Answer>;
};

export type NodeProblem =
  | 'refused'
  | 'unverifiable'
  | 'disagrees'
  | 'contradicts'
  | 'lagging'
  | 'wrong-network'
  | 'incomplete';

export type NodeHealth = {
  /** The node's origin, which contains no secret. */
  url: string;
  operator: string;
  state: 'unknown' | 'healthy' | 'paused' | 'wrong-network' | 'out-of-budget';
  reason: string | null;
  pausedForMs: number;
  /** The number of consecutive failures. */
  failures: number;
  /** Counted since the process started. */
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The daily limit, or `null` without one. */
  requestsPerDay: number | null;
  /** Moving average over the answers, or `null` before the first one. */
  answerMs: number | null;
};

/** Returns each operator's first node, in order of preference, for up to `count` operators. */
export function ofDifferentOperators<Named extends Pick<Node, 'operator'>>(
  nodes: readonly Named[],
  count: number,
): Named[] {
  const operators = new Set<string>();
  return nodes.filter(({ operator }) => {
    if (operators.has(operator) || operators.size >= count) return false;
    operators.add(operator);
    return true;
  });
}

export type Avoidance = ReturnType<typeof createAvoidance>;

/**
 * Remembers an operator whose block can't be judged yet. For a while, other operators are preferred, but the avoided one isn't treated as
 * faulty.
 */
export function createAvoidance(forMs: number) {
  let avoided = '';
  let untilMs = Number.NEGATIVE_INFINITY;
  const isAvoided = ({ operator }: Node) => operator === avoided && performance.now() < untilMs;
  return {
    /** Call this when a node's answer can't be judged. The node's operator replaces the one that was avoided before. */
    avoid: ({ operator }: Node) => {
      avoided = operator;
      untilMs = performance.now() + forMs;
    },
    isAvoided,
    /** Returns the nodes in order of preference, with the avoided operator's nodes at the end. */
    sort: (nodes: readonly Node[]) => {
      const last = nodes.filter(isAvoided);
      return [...nodes.filter((node) => !last.includes(node)), ...last];
    },
  };
}

/**
 * Handles an error from a node that may fail: the pool has already recorded the error, and another node may answer. Unexpected errors are
 * rethrown.
 */
export function orNull(error: unknown): null {
  if (error instanceof AppError) return null;
  throw error;
}
