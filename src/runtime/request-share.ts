/**
 * The share of the process that requests may have, because watcher and webhooks may share it: 1 while their work is in time or there is
 * none, 0 while it comes late.
 */
export type RequestShare = {
  /** A piece of work beside the requests took so long; beyond `inTimeMs` it came late. */
  onWork(tookMs: number, inTimeMs: number): void;
  /** That work is known to lag behind. */
  onBehind(): void;
  /** 0 … 1. */
  current(): number;
};

/** Late pieces among the last ones that are no accident: one alone is a pause of the disk or of the collector. */
const [LATE, LAST] = [2, 3];
/** After the last late piece requests get nothing back for so long, and then all of it little by little. */
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
