export type RequestShare = ReturnType<typeof createRequestShare>;

/**
 * Work counts as late if at least `LATE` of the last `LAST` pieces were late. A single late piece may be due to the disk or the garbage
 * collector.
 */
const [LATE, LAST] = [2, 3];
/** After the last late piece, requests get no share for HOLD_MS. Then their share grows gradually over RECOVER_MS. */
const [HOLD_MS, RECOVER_MS] = [5000, 5000];

/**
 * Determines what share of the process's time requests may use, because the watcher and webhooks may run in the same process. The share is
 * 1 as long as the watcher and webhooks are on time or have nothing to do, and 0 while they are late.
 */
export function createRequestShare(nowMs: () => number = () => performance.now()) {
  let last: boolean[] = [];
  let behindAtMs = Number.NEGATIVE_INFINITY;
  return {
    /** Records how long a piece of the watcher's or the webhooks' work took. The piece was late if it took longer than `inTimeMs`. */
    onWork: (tookMs: number, inTimeMs: number) => {
      last = [...last.slice(1 - LAST), tookMs > inTimeMs];
      if (last.filter(Boolean).length >= LATE) behindAtMs = nowMs();
    },
    /** Records that the watcher or the webhooks are behind with their work. */
    onBehind: () => {
      behindAtMs = nowMs();
    },
    /** Returns a share from 0 to 1. */
    current: () => Math.min(1, Math.max(0, (nowMs() - behindAtMs - HOLD_MS) / RECOVER_MS)),
  };
}
