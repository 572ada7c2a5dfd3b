import { backoffMs } from '../../runtime/loop.ts';

export type Failure = {
  kind: 'refusal' | 'report';
  /** When the request was sent, and how long it took to fail. */
  sentMs: number;
  costMs: number;
  askedMs: number | null;
  /** Whether there's no other node to ask. */
  isAlone: boolean;
};

export type NodePause = ReturnType<typeof createNodePause>;

/** If other nodes are available, a failing node's pauses can grow long. The only node must be retried soon. */
const WITH_OTHERS = { firstMs: 1000, longestMs: 60_000 };
export const ALONE = { firstMs: 250, longestMs: 5000 };
/**
 * The pause after a hang is longer than the timeout by this factor. If it weren't, and a second node hung as well, the first one would be
 * asked again.
 */
const COST_FACTOR = 2;
/** A single successful answer between two refusals isn't a recovery. */
const ANSWERS_THAT_END_A_ROW = 3;
/** A failure this long after the last pause starts a new series. */
const ROW_ENDS_MS = 10 * 60_000;
/** Each pause is shortened at random by up to this share, so that several processes don't retry at the same time. */
const JITTER = 0.25;

/** Pauses a node after consecutive failures. `longestMs` is the limit while other nodes are available. */
export function createNodePause({
  clockMs,
  random,
  longestMs: longestPauseMs = WITH_OTHERS.longestMs,
}: {
  clockMs(): number;
  random(): number;
  longestMs?: number;
}) {
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
    /** Whether a pause of at least `ms` has begun since the last call. */
    takeLong: (ms: number) => {
      const isLong = longestMs >= ms;
      longestMs = 0;
      return isLong;
    },
    /**
     * Records a failure. If the failed request was sent before the current pause began, the failure belongs to that pause and doesn't
     * lengthen it, unless the node itself asks for a longer pause. Returns whether a new pause began.
     */
    fail: ({ kind, sentMs, costMs, askedMs, isAlone }: Failure) => {
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
    /**
     * Records an answer. A few consecutive answers end a series of refusals; a series of wrong answers ends only with `praise`. Returns
     * whether a series ended.
     */
    answer: () => {
      answers += 1;
      return lastKind === 'refusal' && answers >= ANSWERS_THAT_END_A_ROW && endRow();
    },
    praise: endRow,
    /** Restores a previous process's series of wrong answers or refusals. */
    restore: ({ failures, pausedForMs }: { failures: number; pausedForMs: number }) => {
      row = Math.max(row, failures);
      lastKind = 'report';
      untilMs = Math.max(untilMs, clockMs() + Math.min(WITH_OTHERS.longestMs, pausedForMs));
      longestMs = Math.max(longestMs, pausedForMs);
    },
    /**
     * Limits the rest of the pause, unless the node itself asked for the pause. If no other node is available, a long wait is worse than a
     * request.
     */
    shorten: (maxMs: number) => {
      untilMs = Math.min(untilMs, clockMs() + maxMs);
    },
  };
}
