import { backoffMs } from '../../runtime/backoff.ts';

export type Failure = {
  kind: 'refusal' | 'report';
  /** When the request was sent, and how long it took to fail. */
  sentMs: number;
  costMs: number;
  /** How long the node asks to be left alone. */
  askedMs: number | null;
  /** Whether no other node can be asked. */
  isAlone: boolean;
};

/** How long a node is left alone after failures in a row. */
export type NodePause = {
  /**
   * A failure. Those of requests that were sent before the pause began belong to it and do not lengthen it; only what the node
   * itself asks for does. Returns whether a new pause began.
   */
  fail(failure: Failure): boolean;
  /** An answer. A few in a row end a row of refusals; a row of wrong answers ends with `praise` only. Returns whether a row ended. */
  answer(): boolean;
  praise(): boolean;
  /** Takes up a row of wrong answers, or of refusals, that a former process knew of. */
  restore(remembered: { failures: number; pausedForMs: number }): void;
  /** Bounds what is left, save what the node asked for: where no node is left to ask, waiting long is worse than asking. */
  shorten(maxMs: number): void;
  remainingMs(): number;
  /** Failures in a row. */
  failures(): number;
  /** Whether a pause of at least `ms` began since the last time that this was asked. */
  takeLong(ms: number): boolean;
};

/** With others to ask a sick node is left alone for longer and longer; the only one must be found well soon. */
const WITH_OTHERS = { firstMs: 1000, longestMs: 60_000 };
export const ALONE = { firstMs: 250, longestMs: 5000 };
/** A node that hangs is left alone for longer than it was waited for, or a second one that hangs brings the first one back. */
const COST_FACTOR = 2;
/** A single lucky answer between two refusals is no recovery. */
const ANSWERS_THAT_END_A_ROW = 3;
/** A failure so long after the last pause starts a new row. */
const ROW_ENDS_MS = 10 * 60_000;
/** Each pause is shortened by up to this share at random, so that several processes do not come back together. */
const JITTER = 0.25;

/** `longestMs`: with others to ask. */
export function createNodePause({
  clockMs,
  random,
  longestMs: longestPauseMs = WITH_OTHERS.longestMs,
}: {
  clockMs(): number;
  random(): number;
  longestMs?: number;
}): NodePause {
  let row = 0;
  let lastKind: 'refusal' | 'report' = 'refusal';
  let answers = 0;
  let beganMs = Number.NEGATIVE_INFINITY;
  let untilMs = Number.NEGATIVE_INFINITY;
  let askedUntilMs = Number.NEGATIVE_INFINITY;
  let longestMs = 0;
  const remainingMs = () => Math.max(0, Math.max(untilMs, askedUntilMs) - clockMs());
  const endRow = () => {
    const hadRow = row > 0;
    row = 0;
    answers = 0;
    return hadRow;
  };
  return {
    remainingMs,
    failures: () => row,
    takeLong: (ms) => {
      const isLong = longestMs >= ms;
      longestMs = 0;
      return isLong;
    },
    fail: ({ kind, sentMs, costMs, askedMs, isAlone }) => {
      const nowMs = clockMs();
      if (askedMs !== null) askedUntilMs = Math.max(askedUntilMs, nowMs + askedMs);
      longestMs = Math.max(longestMs, askedMs ?? 0);
      answers = 0;
      lastKind = kind;
      if (sentMs <= beganMs || nowMs < untilMs) return false;
      if (nowMs - untilMs > ROW_ENDS_MS) row = 0;
      row += 1;
      const backoff = isAlone ? ALONE : { ...WITH_OTHERS, longestMs: longestPauseMs };
      beganMs = nowMs;
      const minMs = isAlone ? 0 : costMs * COST_FACTOR;
      const pauseMs = Math.min(backoff.longestMs, Math.max(minMs, backoffMs(row, backoff)));
      longestMs = Math.max(longestMs, pauseMs);
      untilMs = nowMs + pauseMs * (1 - JITTER * random());
      return true;
    },
    answer: () => {
      answers += 1;
      return lastKind === 'refusal' && answers >= ANSWERS_THAT_END_A_ROW && endRow();
    },
    praise: endRow,
    restore: ({ failures, pausedForMs }) => {
      row = Math.max(row, failures);
      lastKind = 'report';
      untilMs = Math.max(untilMs, clockMs() + Math.min(WITH_OTHERS.longestMs, pausedForMs));
      longestMs = Math.max(longestMs, pausedForMs);
    },
    shorten: (maxMs) => {
      untilMs = Math.min(untilMs, clockMs() + maxMs);
    },
  };
}
