import { createFairQueue } from '../web/fair-queue.ts';

/** `types` is null for all types. */
export type Waiter = { keyId: string; projectId: string; types: readonly string[] | null };

/** One request's wait. The caller must close it. */
export type EventWait = {
  /** Resolves when there may be new events since the last call, or since the wait was opened for the first call. */
  look(): Promise<void>;
  /** True once the time is up, the server stops, or `end` was called. */
  isOver(): boolean;
  end(): void;
  close(): void;
};

export type EventWaits = ReturnType<typeof createEventWaits>;

type WaitLimits = { ofKey: number; total: number; lookMs: number };
/** Called with the number of waits whenever one begins or ends. */
type OnCount = (count: number) => void;

/**
 * Each wait holds its own connection, and the limit for connections is 12,000. A key needs one wait per consumer. Without a notification, a
 * wait checks again after 10 s.
 */
const WAIT_LIMITS: WaitLimits = { ofKey: 10, total: 500, lookMs: 10_000 };

type Open = Waiter & { wake(): void; end(): void };

/** Tracks this process's requests that are waiting for events. Each holds a timer, but no database connection. */
export function createEventWaits(onCount: OnCount, { ofKey, total, lookMs }: WaitLimits = WAIT_LIMITS) {
  const open = createFairQueue<Open>();
  let isStopped = false;
  const all = () => [...open.entries()].map(([, wait]) => wait);
  return {
    /** Returns `null` if too many requests are waiting already. */
    open: (waiter: Waiter, waitMs: number): EventWait | null => {
      if (isStopped || open.count() >= total || open.countOf(waiter.keyId) >= ofKey) return null;
      const { wake, ...wait } = createWait(waitMs, lookMs);
      const held = { ...waiter, wake, end: wait.end };
      open.add(waiter.keyId, held);
      onCount(open.count());
      return {
        ...wait,
        close: () => {
          open.remove(waiter.keyId, held);
          onCount(open.count());
        },
      };
    },
    /** Handles a notification on `EVENTS_CHANNEL`. `null` means that notifications may have been missed. */
    hear: (payload: string | null) => {
      const [projectId, type = ''] = payload?.split(' ') ?? [];
      for (const { wake, ...of } of all()) {
        if (payload === null || (of.projectId === projectId && (of.types?.includes(type) ?? true))) wake();
      }
    },
    /** Ends all waits and refuses new ones. */
    stop: () => {
      isStopped = true;
      for (const { end } of all()) end();
    },
  };
}

/** Creates a wait. If it's woken between two calls of `look`, the second call notices that. */
function createWait(waitMs: number, lookMs: number) {
  const endsAt = performance.now() + waitMs;
  let [isAwake, isEnded] = [false, false];
  let resume = () => {};
  const wake = () => {
    isAwake = true;
    resume();
  };
  return {
    wake,
    end: () => {
      isEnded = true;
      wake();
    },
    isOver: () => isEnded || performance.now() >= endsAt,
    look: async () => {
      if (!isAwake) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.min(lookMs, endsAt - performance.now()));
          resume = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isAwake = false;
    },
  };
}
