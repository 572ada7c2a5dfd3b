import type { WebhookEvent } from './types.ts';

/**
 * Stores events until they are handled. `Tx` is the transaction in which your handler writes. The same transaction marks the event as
 * handled.
 */
export type InboxStorage<Tx> = {
  /** Adds a waiting event. Does nothing if its id is already stored. The event must be on disk when this resolves. */
  add(event: WebhookEvent): Promise<unknown>;
  /**
   * Calls `handle` with the event that has been waiting longest, and marks the event as handled. Either both take effect or neither. If
   * `handle` throws, the event waits again, longer each time, and this throws the same error. Two concurrent calls never get the same
   * event. Returns whether an event was waiting.
   */
  take(handle: (event: WebhookEvent, tx: Tx) => Promise<unknown>): Promise<boolean>;
};

export type InboxOptions = {
  /** Called with every error that the handler or the storage throws. Default: `console.error`. */
  onError?: ((error: unknown) => void) | undefined;
  /** How often to check the storage for events that other processes added or that are due again, in milliseconds. Default: 1,000. */
  pollMs?: number | undefined;
};

export type Inbox = {
  /** The handler for the middleware. It only stores the event before the response is sent. */
  receive(event: WebhookEvent): Promise<void>;
  /** Handles waiting events one at a time until the signal is aborted. Call it several times to handle several events concurrently. */
  run(signal: AbortSignal): Promise<void>;
};

/** Creates an inbox: webhooks are verified, stored and acknowledged immediately, and handled afterwards, each exactly once. */
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
        // The wait begins before checking the storage, so that events that arrive during the check aren't missed.
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
