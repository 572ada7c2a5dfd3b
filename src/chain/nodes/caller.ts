import type { Question } from './question.ts';

/** One way to ask a node; rejects with `TransportRefusal`, `AnswerTooLarge`, or whatever a check stumbles over. */
export type Caller = {
  ask<Answer>(question: Question<Answer>, limits: CallLimits): Promise<Answer>;
  close(): Promise<void>;
};

export type CallLimits = { maxBytes: number; signal: AbortSignal; onBytes(count: number): void };
