import { createFairQueue } from '../web/fair-queue.ts';

/** `types`: null for all. */
export type Waiter = { keyId: string; projectId: string; types: readonly string[] | null };

/** The wait of one request. It must be closed. */
export type EventWait = {
  /** Resolves when there may be an event that was not there at the last call or, the first time, when the wait was opened. */
  look(): Promise<void>;
  /** Its time is over, the server stops, or `end` was called. */
  isOver(): boolean;
  end(): void;
  close(): void;
};

export type EventWaits = {
  /** `null`: so many wait that this one must not. */
  open(waiter: Waiter, waitMs: number): EventWait | null;
  /** `EVENTS_CHANNEL` was heard; `null`: something may have been missed. */
  hear(payload: string | null): void;
  /** Ends all waits, also those to come. */
  stop(): void;
};

type WaitLimits = { ofKey: number; total: number; lookMs: number };
/** Hears how many wait, with each that begins or ends. */
type OnCount = (count: number) => void;

/**
 * Each waits on a connection of its own, of which there are 12,000; a key needs one for each of its consumers. Where nothing is heard of
 * the database, a wait looks again after 10 s.
 */
const WAIT_LIMITS: WaitLimits = { ofKey: 10, total: 500, lookMs: 10_000 };

type Open = Waiter & { wake(): void; end(): void };

/** Requests of one process that wait for events. They hold a timer each, and nothing of the database. */
export function createEventWaits(onCount: OnCount, { ofKey, total, lookMs }: WaitLimits = WAIT_LIMITS): EventWaits {
  const open = createFairQueue<Open>();
  let isStopped = false;
  const all = () => [...open.entries()].map(([, wait]) => wait);
  return {
    open: (waiter, waitMs) => {
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
    hear: (payload) => {
      const [projectId, type = ''] = payload?.split(' ') ?? [];
      for (const { wake, ...of } of all()) {
        if (payload === null || (of.projectId === projectId && (of.types?.includes(type) ?? true))) wake();
      }
    },
    stop: () => {
      isStopped = true;
      for (const { end } of all()) end();
    },
  };
}

/** A wake between two looks is not lost. */
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
