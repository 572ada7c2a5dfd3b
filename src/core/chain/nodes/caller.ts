import type { Question } from './question.ts';

/** A transport for questions to a node. Rejects with `TransportRefusal`, `AnswerTooLarge`, or the error of a check. */
export type Caller = {
  ask<Answer>(question: Question<Answer>, limits: CallLimits): Promise<Answer>;
  close(): Promise<void>;
};

export type CallLimits = { maxBytes: number; signal: AbortSignal; onBytes(count: number): void };
