/**
 * The share of the process that requests may use, because the watcher and webhooks may run in the same process. It is 1 while their work is
 * in time or there is none, and 0 while it is late.
 */
export type RequestShare = {
  /** Records how long a piece of other work took. Beyond `inTimeMs` it was late. */
  onWork(tookMs: number, inTimeMs: number): void;
  /** Records that other work lags behind. */
  onBehind(): void;
  /** From 0 to 1. */
  current(): number;
};

/** This many late pieces among the last ones count as lag. A single one may be a pause of the disk or the garbage collector. */
const [LATE, LAST] = [2, 3];
/** After the last late piece, requests get nothing for HOLD_MS. Then their share grows back gradually over RECOVER_MS. */
const [HOLD_MS, RECOVER_MS] = [5000, 5000];

export function createRequestShare(nowMs: () => number = () => performance.now()): RequestShare {
  let last: boolean[] = [];
  let behindAtMs = Number.NEGATIVE_INFINITY;
  return {
    onWork: (tookMs, inTimeMs) => {
      last = [...last.slice(1 - LAST), tookMs > inTimeMs];
      if (last.filter(Boolean).length >= LATE) behindAtMs = nowMs();
    },
    onBehind: () => {
      behindAtMs = nowMs();
    },
    current: () => Math.min(1, Math.max(0, (nowMs() - behindAtMs - HOLD_MS) / RECOVER_MS)),
  };
}
