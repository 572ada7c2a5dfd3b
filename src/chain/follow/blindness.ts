/** Whether the chain is visible, from what each look at it brought. Times are monotonic milliseconds. */
export type Blindness = {
  /** Why nothing is seen of the chain, or `null`. */
  reason(): string | null;
  /** This process begins to look; `reason` is what is open of a former one. */
  begin(reason: string | null): void;
  /** Verified up to this height. Only one that was never reached before is news. */
  onHead(number: number): void;
  /** The nodes answered, and the newest examined block is so old. */
  onLook(examinedAgeMs: number): void;
  onFailure(reason: string): void;
  /** Forgets the failures so far, because they say nothing about the chain. */
  forgetFailures(): void;
};

/** A newest examined block that is older than this many block times means that the nodes, or the network, have stopped. */
const STALE_BLOCKS = 20;
/**
 * A public node refuses an answer now and then, and a fork while blocks are read contradicts once. A node that is down, or on
 * another chain, fails again and again.
 */
const FAILURES = 3;
/**
 * So many block times without a block or a look that succeeded. Looks fail several times a second, and a service that starts,
 * or comes back, works through old blocks: neither is blind yet.
 */
const UNSEEN_BLOCKS = 3;

/**
 * The watcher is blind when it gets no answer, or old blocks and no further one. Only a fresh block ends that: a node that falls
 * further and further behind shows a new block now and then.
 */
export function createBlindness(blockMs: number, clockMs = () => performance.now()): Blindness {
  let reason: string | null = null;
  let failures = 0;
  let highest = -1;
  let newBlockMs = clockMs();
  let seenMs = newBlockMs;
  const isLongAgo = (ms: number) => clockMs() - ms >= UNSEEN_BLOCKS * blockMs;
  return {
    reason: () => reason,
    begin: (open) => {
      reason = open;
      failures = 0;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    onHead: (number) => {
      if (number <= highest) return;
      highest = number;
      newBlockMs = clockMs();
      seenMs = newBlockMs;
    },
    onLook: (examinedAgeMs) => {
      failures = 0;
      if (examinedAgeMs <= STALE_BLOCKS * blockMs) {
        reason = null;
        seenMs = clockMs();
      } else if (reason !== null || isLongAgo(newBlockMs)) {
        reason = `the newest block that nodes show to examine is ${Math.round(examinedAgeMs / 1000)} s old`;
      }
    },
    onFailure: (why) => {
      failures += 1;
      if (reason !== null || (failures >= FAILURES && isLongAgo(seenMs))) reason = why;
    },
    forgetFailures: () => {
      failures = 0;
    },
  };
}
