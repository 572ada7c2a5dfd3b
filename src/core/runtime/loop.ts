import { createLogThrottle, type Logger } from './log.ts';
import { reasonOf } from './reason-of.ts';

export type Loop = { stop(): Promise<void> };

type LoopOptions = {
  name: string;
  log: Logger;
  /** After repeated failures, the pause doubles from 100 ms up to this limit. */
  maxPauseMs: number;
  /** Records each round's outcome. */
  health?: LoopHealth | undefined;
  /**
   * Runs a round and returns the pause before the next one in milliseconds. If it throws, the error is logged and the round is retried. If
   * a failed round is already logged, return `failedPauseMs` instead. If there was nothing to do yet, return `idlePauseMs`, because such a
   * round doesn't show that the loop works again.
   */
  run(isStopping: () => boolean): Promise<number | { failedPauseMs: number } | { idlePauseMs: number }>;
};

const FIRST_PAUSE_MS = 100;

/** The database reports its own outages, so the loop doesn't log them as well. */
function isDatabaseOutage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'DATABASE_UNAVAILABLE';
}

/**
 * Runs rounds until `stop` is called, even if a round throws, because a loop must never die silently. `stop` waits for the current round.
 */
export function startLoop({ name, log, maxPauseMs, health, run }: LoopOptions): Loop {
  let stopping = false;
  let wake: () => void = () => undefined;
  /** `told` is the number of consecutive failures at the time of the last log message. */
  const failures = { count: 0, told: 0 };
  // Log the same failure at most once a minute, so that an outage doesn't fill the disk. This also works if several failures alternate.
  const throttle = createLogThrottle(() => performance.now());
  const report = (error: unknown) => {
    failures.count += 1;
    const message = reasonOf(error);
    if (!throttle.isDue(message)) return;
    failures.told = failures.count;
    // Log only the message of a transient error, because its stack doesn't help anyone.
    const isExpected = error instanceof Error && 'retryable' in error && error.retryable === true;
    const what = isExpected ? { reason: message } : { err: error };
    log.warn({ ...what, loop: name, failures: failures.count }, `${name} failed; retrying`);
  };
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const rounds = async () => {
    while (!stopping) {
      let pauseMs: number;
      try {
        const round = await run(() => stopping);
        if (typeof round === 'object' && 'idlePauseMs' in round) {
          if (!stopping) await pause(round.idlePauseMs);
          continue;
        }
        health?.note(name, null);
        pauseMs = typeof round === 'number' ? round : round.failedPauseMs;
        failures.count = 0;
        if (typeof round === 'number' && failures.told > 0) {
          log.info({ loop: name, failures: failures.told }, `${name} works again`);
          failures.told = 0;
        }
      } catch (error) {
        report(error);
        if (!isDatabaseOutage(error)) health?.note(name, error);
        pauseMs = backoffMs(failures.count, { firstMs: FIRST_PAUSE_MS, longestMs: maxPauseMs });
      }
      if (!stopping) await pause(pauseMs);
    }
  };
  const ended = rounds();
  return {
    stop: () => {
      stopping = true;
      wake();
      return ended;
    },
  };
}

export type LoopHealth = ReturnType<typeof createLoopHealth>;

/**
 * Tracks which of a process's loops keep failing, whatever their work is, and even if another process holds their lease. Counts checks
 * instead of time, because a process that was paused hasn't failed during the pause.
 */
export function createLoopHealth() {
  const failing = new Map<string, { looks: number; error: unknown }>();
  return {
    /** Records a loop's round with its error, or `null` if it finished. */
    note: (name: string, error: unknown) => {
      if (error === null) failing.delete(name);
      else failing.set(name, { looks: failing.get(name)?.looks ?? 0, error });
    },
    /**
     * Checks all loops. Returns the loops that have failed and haven't finished a round since, during the last `looks` checks, including
     * this one, with their last error.
     */
    look: (looks: number) => {
      for (const seen of failing.values()) seen.looks += 1;
      return [...failing].flatMap(([name, seen]) => (seen.looks > looks ? [{ name, error: seen.error }] : []));
    },
  };
}

export type Backoff = { firstMs: number; longestMs: number };

/** Returns the pause after `failures` failures in a row, counted from 1. It starts at `firstMs` and doubles up to `longestMs`. */
export function backoffMs(failures: number, { firstMs, longestMs }: Backoff): number {
  // The exponent is bounded, so that the product stays a safe number. No configuration needs a larger factor.
  return Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 30));
}
