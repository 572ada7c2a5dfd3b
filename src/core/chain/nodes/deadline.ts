/** An answer that arrives at this rate isn't slow, however large it is. */
const GOOD_BYTES_PER_MS = 512;
/** Why an answer is late: nothing has arrived, or only a part of it. */
export type Lateness = 'silent' | 'slow';

export type Deadline = {
  signal: AbortSignal;
  /** Call this when bytes have arrived. The answer may then take longer, because only silence is a failure, not length. */
  extend(bytes: number): void;
  lateness(): Lateness;
  /** Returns why the deadline passed, as text for people. */
  reason(): string;
  clear(): void;
};

/**
 * Aborts after `limitMs` without an answer. An answer that arrives at a good rate may take up to `steadyShare` times as long. If that isn't
 * enough, the caller must increase `limitMs`.
 */
export function startDeadline(limitMs: number, steadyShare: number): Deadline {
  const controller = new AbortController();
  const startedMs = performance.now();
  let bytesRead = 0;
  let timer: NodeJS.Timeout;
  const untilMs = () => startedMs + Math.min(limitMs * steadyShare, limitMs + bytesRead / GOOD_BYTES_PER_MS);
  const arm = () => {
    const leftMs = untilMs() - performance.now();
    if (leftMs <= 0) controller.abort();
    else timer = setTimeout(arm, Math.ceil(leftMs));
  };
  arm();
  return {
    signal: controller.signal,
    extend: (bytes) => {
      bytesRead += bytes;
    },
    lateness: () => (bytesRead === 0 ? 'silent' : 'slow'),
    reason: () =>
      bytesRead === 0
        ? `no whole answer before the timeout of ${limitMs} ms`
        : `no whole answer before the timeout: ${bytesRead} bytes in ${Math.round(performance.now() - startedMs)} ms`,
    clear: () => clearTimeout(timer),
  };
}
