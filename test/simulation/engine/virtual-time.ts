import { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timersPromises from 'node:timers/promises';

/** The owner of a timer: it fires in the owner's context, and never once the owner is dead. */
export type Owner = { readonly isAlive: boolean; readonly pausedUntilMs: number };

type Timer = { readonly owner: Owner; readonly run: () => void; atMs: number; order: number; everyMs: number | null };

/**
 * Simulated time. It stops while anything is happening, and jumps to the next timer when nothing is. Inside `within`, `setTimeout`,
 * `setInterval`, `performance.now` and `node:timers/promises` use it; elsewhere they use real time.
 */
export type VirtualTime = {
  /** Unix milliseconds. */
  nowMs(): number;
  /** Runs a function, and everything that follows from it, as this owner. */
  within<Result>(owner: Owner, work: () => Result): Result;
  /** Runs a function in real time. */
  outside<Result>(work: () => Result): Result;
  /** Calls back for an owner after a while. */
  after(owner: Owner, ms: number, run: () => void): void;
  /** Resolves after a while; never, if the owner dies before. */
  sleep(owner: Owner, ms: number): Promise<void>;
  /** Fires the next timer that is due until then, if there is one. The time is then that timer's, or `untilMs`. */
  fireNext(untilMs: number): boolean;
  /** Restores the real timers. */
  restore(): void;
};

const owners = new AsyncLocalStorage<Owner | null>();

export function createVirtualTime(startMs: number): VirtualTime {
  let nowMs = startMs;
  let order = 0;
  const timers: Timer[] = [];
  const insert = (timer: Timer) => {
    let low = 0;
    let high = timers.length;
    // Latest first, so that the next timer is taken from the end.
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = timers[middle] as Timer;
      const isLater = other.atMs > timer.atMs || (other.atMs === timer.atMs && other.order > timer.order);
      if (isLater) low = middle + 1;
      else high = middle;
    }
    timers.splice(low, 0, timer);
  };
  const add = (owner: Owner, ms: number, run: () => void, everyMs: number | null = null): Timer => {
    order += 1;
    const timer = { owner, run, atMs: nowMs + Math.max(0, Number.isFinite(ms) ? ms : 0), order, everyMs };
    insert(timer);
    return timer;
  };
  const remove = (timer: Timer) => {
    timer.everyMs = null;
    const at = timers.indexOf(timer);
    if (at >= 0) timers.splice(at, 1);
  };
  const restore = replaceGlobals({ add, remove, nowMs: () => nowMs, startMs });
  return {
    nowMs: () => nowMs,
    within: (owner, work) => owners.run(owner, work),
    outside: (work) => owners.run(null, work),
    after: (owner, ms, run) => void add(owner, ms, run),
    sleep: (owner, ms) => new Promise((resolve) => void add(owner, ms, resolve)),
    fireNext(untilMs) {
      const timer = timers.at(-1);
      if (timer === undefined || timer.atMs > untilMs) {
        nowMs = Math.max(nowMs, untilMs);
        return false;
      }
      timers.pop();
      const { owner } = timer;
      if (!owner.isAlive) return true;
      if (owner.pausedUntilMs > Math.max(nowMs, timer.atMs)) {
        // A paused owner finds everything due when it resumes.
        timer.atMs = owner.pausedUntilMs;
        insert(timer);
        return true;
      }
      nowMs = Math.max(nowMs, timer.atMs);
      if (timer.everyMs !== null) {
        timer.atMs = nowMs + timer.everyMs;
        insert(timer);
      }
      owners.run(owner, timer.run);
      return true;
    },
    restore,
  };
}

type Clockwork = {
  add(owner: Owner, ms: number, run: () => void, everyMs?: number | null): Timer;
  remove(timer: Timer): void;
  nowMs(): number;
  startMs: number;
};

/** The return value of `setTimeout`. */
class Handle {
  readonly timer: Timer;
  constructor(timer: Timer) {
    this.timer = timer;
  }
  unref(): this {
    return this;
  }
  ref(): this {
    return this;
  }
}

let isReplaced = false;

function replaceGlobals({ add, remove, nowMs, startMs }: Clockwork): () => void {
  // A test that timed out leaves its simulation running. With two of them, neither would keep its own time.
  if (isReplaced) throw new Error('another simulation is still running in this process, because its test timed out');
  isReplaced = true;
  const real = { setTimeout, clearTimeout, setInterval, clearInterval };
  const realNow = performance.now;
  const realDelay = timersPromises.setTimeout;
  const set =
    (original: typeof setTimeout | typeof setInterval, isRepeated: boolean) =>
    (run: (...values: unknown[]) => void, ms = 0, ...values: unknown[]) => {
      const owner = owners.getStore();
      if (owner === undefined || owner === null) return original(run, ms, ...values);
      return new Handle(add(owner, ms, () => run(...values), isRepeated ? Math.max(1, ms) : null));
    };
  const clear = (original: typeof clearTimeout) => (handle: unknown) => {
    if (handle instanceof Handle) remove(handle.timer);
    else original(handle as NodeJS.Timeout);
  };
  const delay = (ms = 0, value?: unknown, options: { signal?: AbortSignal; ref?: boolean } = {}): Promise<unknown> => {
    const owner = owners.getStore();
    if (owner === undefined || owner === null) return realDelay(ms, value, options);
    return new Promise((resolve, reject) => {
      const { signal } = options;
      const abort = () => {
        remove(timer);
        reject(new DOMException('The operation was aborted', 'AbortError'));
      };
      const timer = add(owner, ms, () => {
        signal?.removeEventListener('abort', abort);
        resolve(value);
      });
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  };
  Object.assign(globalThis, {
    setTimeout: set(real.setTimeout, false),
    setInterval: set(real.setInterval, true),
    clearTimeout: clear(real.clearTimeout),
    clearInterval: clear(real.clearInterval),
  });
  performance.now = () => (owners.getStore() ? nowMs() - startMs : realNow.call(performance));
  timersPromises.setTimeout = delay as typeof realDelay;
  syncBuiltinESMExports();
  return () => {
    isReplaced = false;
    Object.assign(globalThis, real);
    performance.now = realNow;
    timersPromises.setTimeout = realDelay;
    syncBuiltinESMExports();
    // Otherwise each await in the worker's next tests would take three times as long.
    owners.disable();
  };
}
