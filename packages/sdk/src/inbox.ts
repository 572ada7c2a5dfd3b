import type { WebhookEvent } from './types.ts';

/** Where events wait until they are handled. `Tx` is what your handler writes with, in the transaction that marks the event as handled. */
export type InboxStorage<Tx> = {
  /** Adds an event that waits; does nothing where its id is known. It must be on disk when this resolves. */
  add(event: WebhookEvent): Promise<unknown>;
  /**
   * Hands over the event that waits longest, and marks it as handled: both or neither. If `handle` throws, the event waits again, longer each
   * time, and this throws the same. Two at once never get the same event. Answers whether one was waiting.
   */
  take(handle: (event: WebhookEvent, tx: Tx) => Promise<unknown>): Promise<boolean>;
};

export type InboxOptions = {
  /** Told what the handler or the storage threw; `console.error` by default. */
  onError?: ((error: unknown) => void) | undefined;
  /** How often the storage is asked for what other processes added, and what waits again; 1,000 by default. */
  pollMs?: number | undefined;
};

export type Inbox = {
  /** The handler for the middleware: it stores the event, which is all that happens before the answer. */
  receive(event: WebhookEvent): Promise<void>;
  /** Handles what waits, one event at a time, until the signal is aborted. Call it more than once to handle several at a time. */
  run(signal: AbortSignal): Promise<void>;
};

/** An inbox: webhooks are verified, stored and answered at once, and handled afterwards, each once. */
export function createInbox<Tx>(
  storage: InboxStorage<Tx>,
  handle: (event: WebhookEvent, tx: Tx) => Promise<unknown>,
  { onError = console.error, pollMs = 1000 }: InboxOptions = {},
): Inbox {
  const waiting = new Set<() => void>();
  const wakeAll = () => {
    for (const wake of waiting) wake();
  };
  return {
    receive: async (event) => {
      await storage.add(event);
      wakeAll();
    },
    run: async (signal) => {
      signal.addEventListener('abort', wakeAll);
      while (!signal.aborted) {
        // Made before the look, so that what comes meanwhile is not missed.
        const { slept, wake } = sleep(pollMs);
        waiting.add(wake);
        const isMore = await storage.take(handle).catch((error: unknown) => {
          onError(error);
          return false;
        });
        if (isMore) wake();
        await slept;
        waiting.delete(wake);
      }
      signal.removeEventListener('abort', wakeAll);
    },
  };
}

function sleep(ms: number): { slept: Promise<void>; wake(): void } {
  let wake = () => {};
  const slept = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  return { slept, wake };
}
