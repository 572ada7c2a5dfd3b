/** A semaphore that runs up to `maxAtOnce` tasks concurrently and queues the others. The caller must limit the queue. */
export function createSemaphore(maxAtOnce: number) {
  const waiting: (() => void)[] = [];
  let atOnce = 0;
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (atOnce >= maxAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else atOnce += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) atOnce -= 1;
      else next();
    }
  };
}
