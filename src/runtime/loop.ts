import { backoffMs } from './backoff.ts';
import type { Logger } from './log.ts';
import { createLogThrottle } from './log-throttle.ts';
import type { LoopHealth } from './loop-health.ts';
import { reasonOf } from './reason-of.ts';

export type Loop = { stop(): Promise<void> };

export type LoopOptions = {
  name: string;
  log: Logger;
  /** The pause after repeated failures doubles from 100 ms up to this. */
  maxPauseMs: number;
  /** Hears of each round. */
  health?: LoopHealth | undefined;
  /**
   * Runs a round; returns the pause before the next in milliseconds. A throw is logged and the round is tried again. `failedPauseMs` is for a
   * round that failed, where the log says so already.
   */
  run(isStopping: () => boolean): Promise<number | { failedPauseMs: number }>;
};

const FIRST_PAUSE_MS = 100;

/** A database that does not answer is told of by what asks it first. */
function isAway(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'DATABASE_UNAVAILABLE';
}

/**
 * Runs a round again and again until `stop`, even if a round throws: a loop never dies silently. `stop` waits for the round that is under
 * way.
 */
export function startLoop({ name, log, maxPauseMs, health, run }: LoopOptions): Loop {
  let stopping = false;
  let wake: () => void = () => undefined;
  /** `told`: how many in a row there were at the last message that the loop fails. */
  const failures = { count: 0, told: 0 };
  // The same failure once a minute, so that an outage does not fill the disk, also where several take turns.
  const seldom = createLogThrottle(() => performance.now());
  const report = (error: unknown) => {
    failures.count += 1;
    const message = reasonOf(error);
    if (!seldom.isDue(message)) return;
    failures.told = failures.count;
    // An error that is expected to pass by itself is logged by its message alone: the place in the program helps no reader.
    const isExpected = error instanceof Error && 'retryable' in error && error.retryable === true;
    const what = isExpected ? { reason: message } : { err: error };
    log.warn({ ...what, loop: name, failures: failures.count }, `${name} failed and tries again`);
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
        health?.note(name, false);
        pauseMs = typeof round === 'number' ? round : round.failedPauseMs;
        failures.count = 0;
        if (typeof round === 'number' && failures.told > 0) {
          log.info({ loop: name, failures: failures.told }, `${name} works again`);
          failures.told = 0;
        }
      } catch (error) {
        report(error);
        if (!isAway(error)) health?.note(name, true);
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
