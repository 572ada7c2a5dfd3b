import type { Question, Substitutable } from './question.ts';

/**
 * `maxBytes`: of the answer, less than the question's own bound. `isOptional`: a stranger chose what is asked for, so that the node is
 * not paused where the question may be at fault: for an answer that is too large, too late or unreadable. `mayBeLarge`: the node is not
 * blamed for an answer that is too large. `wantsBytes`: asks over gRPC, also a node that is usually asked over HTTP.
 */
export type AskOptions = {
  timeoutMs?: number;
  maxBytes?: number;
  isOptional?: boolean;
  mayBeLarge?: boolean;
  wantsBytes?: boolean;
};

/** A node as those see it who ask. */
export type Node = {
  /** Base URL; its path may be a secret. */
  url: string;
  /** For logs and evidence: without credentials, key and path; different for each node of a pool. */
  origin: string;
  operator: string;
  /** Whether it can be asked for the very bytes of what it shows. */
  hasBytes: boolean;
  /** Whether such questions may be asked now; for `bytes`, over gRPC of a node that is usually asked over HTTP. */
  isOpenFor(kind: Substitutable): boolean;
  /** Its answers to such questions were of no use: none are asked for a while, longer with each time in a row. */
  setAside(kind: Substitutable, reason: string): void;
  /** What is left of its requests of the UTC day; `null` without a limit. */
  requestsLeft(): number | null;
  /** The answer, or throws `NODE_REFUSED`. A node that is paused or out of its budget refuses at once, unasked. */
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
  /** The node's origin, which holds no secret. */
  url: string;
  operator: string;
  state: 'unknown' | 'healthy' | 'paused' | 'wrong-network' | 'out-of-budget';
  reason: string | null;
  pausedForMs: number;
  /** In a row. */
  failures: number;
  /** Since the start of the process. */
  requests: number;
  refusals: number;
  requestsToday: number;
  /** Its limit; `null` without one. */
  requestsPerDay: number | null;
  /** A moving average over answers; null before the first. */
  answerMs: number | null;
};
