import { setTimeout as delay } from 'node:timers/promises';

/** Waits, but not beyond an abort: then it rejects with the signal's reason. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}

/** Waits for work, but not beyond an abort: then it rejects with the signal's reason, and the work goes on unheard. */
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

/** The pause after so many failures in a row: doubled each time up to the most, and of that a random part above the half. */
export function backoff(failures: number, { firstMs, mostMs }: { firstMs: number; mostMs: number }): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 16)) * (0.5 + Math.random() / 2);
}
