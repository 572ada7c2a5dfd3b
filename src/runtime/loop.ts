import { backoffMs } from './backoff.ts';
import type { Logger } from './log.ts';

export type Loop = { stop(): Promise<void> };

export type LoopOptions = {
  name: string;
  log: Logger;
  /** The pause after repeated failures doubles from 100 ms up to this. */
  maxPauseMs: number;
  /** Runs a round; returns the pause before the next in milliseconds. A throw is logged and the round is tried again. */
  run(isStopping: () => boolean): Promise<number>;
};

const FIRST_PAUSE_MS = 100;
/** The same failure is logged at once and then at most this often, so that an outage does not fill the disk. */
const REPEAT_LOG_MS = 60_000;

/**
 * Runs a round again and again until `stop`, even if a round throws: a loop never dies silently. `stop` waits for the round that is under
 * way.
 */
export function startLoop({ name, log, maxPauseMs, run }: LoopOptions): Loop {
  let stopping = false;
  let wake: () => void = () => undefined;
  const failures = { count: 0, lastMessage: '', lastLoggedMs: 0 };
  const report = (error: unknown) => {
    failures.count += 1;
    const message = error instanceof Error ? error.message : String(error);
    const nowMs = performance.now();
    if (message === failures.lastMessage && nowMs - failures.lastLoggedMs < REPEAT_LOG_MS) return;
    failures.lastMessage = message;
    failures.lastLoggedMs = nowMs;
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
        pauseMs = await run(() => stopping);
        if (failures.count > 0) log.info({ loop: name, failures: failures.count }, `${name} works again`);
        failures.count = 0;
        failures.lastMessage = '';
      } catch (error) {
        report(error);
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
