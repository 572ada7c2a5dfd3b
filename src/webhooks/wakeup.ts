export type Wakeup = {
  /** Ends the present wait, or the next one if none is going on. */
  wake(): void;
  /** Resolves when woken, or after `ms`. Only one caller may wait at a time. */
  wait(ms: number): Promise<void>;
};

/** A pause that can be cut short; a wake that comes between two waits is not lost. */
export function createWakeup(): Wakeup {
  let isAwake = false;
  let resume: (() => void) | undefined;
  return {
    wake: () => {
      isAwake = true;
      resume?.();
    },
    wait: async (ms) => {
      if (!isAwake) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          resume = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        resume = undefined;
      }
      isAwake = false;
    },
  };
}
