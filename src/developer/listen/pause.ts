import { setTimeout as delay } from 'node:timers/promises';
import { type Backoff, backoffMs } from '../../core/runtime/loop.ts';

/** Waits for some time. If the signal is aborted, rejects with its reason. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** Waits for `work`. If the signal is aborted, rejects with its reason and ignores the result of `work`. */
export async function whileWanted<Output>(work: Promise<Output>, signal: AbortSignal): Promise<Output> {
  signal.throwIfAborted();
  let stop: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** The pause after several failures in a row, minus a random part of up to one half. */
export function backoff(failures: number, limits: Backoff): number {
  return backoffMs(failures, limits) * (0.5 + Math.random() / 2);
}
