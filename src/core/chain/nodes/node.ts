import type { Question, Substitutable } from './question.ts';

/**
 * `maxBytes`: a limit of the answer below the question's own. `isOptional`: a stranger chose the question. The node isn't paused if the
 * question may be at fault: for an answer that is too large, too late or unreadable. `mayBeLarge`: the node isn't blamed for an answer that
 * is too large. `wantsBytes`: asks over gRPC, even if the node is normally asked over HTTP.
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
  /** For logs and evidence: without credentials, key and path. Different for each node of a pool. */
  origin: string;
  operator: string;
  /** Whether it can return raw bytes. */
  hasBytes: boolean;
  /**
   * Whether questions of this kind may be asked now. `bytes` means over the separate gRPC API of a node that is normally asked over HTTP.
   */
  isOpenFor(kind: Substitutable): boolean;
  /** Pauses questions of this kind, because the answers were of no use. Each consecutive pause is longer. */
  setAside(kind: Substitutable, reason: string): void;
  /** The remaining requests of the UTC day; `null` without a limit. */
  requestsLeft(): number | null;
  /** Returns the answer, or throws `NODE_REFUSED`. If the node is paused or out of budget, it throws at once without a request. */
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
  /** Consecutive failures. */
  failures: number;
  /** Since the process started. */
  requests: number;
  refusals: number;
  requestsToday: number;
  /** The daily limit; `null` without one. */
  requestsPerDay: number | null;
  /** A moving average over answers; `null` before the first. */
  answerMs: number | null;
};
