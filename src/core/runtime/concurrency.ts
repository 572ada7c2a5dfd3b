import { setTimeout as sleep } from 'node:timers/promises';

/** Asks one question. Questions that arrive while others are in progress may be batched. */
export type Ask<Question, Answer> = (question: Question) => Promise<Answer>;

type CoalesceOptions<Question, Answer> = {
  /** Answers one or more questions in the given order. If it rejects, every caller gets the rejection. */
  answer(questions: Question[]): Promise<Answer[]>;
  /** Maximum number of concurrent calls to `answer`. As long as fewer calls are in progress, a question never waits for another one. */
  maxUnderWay: number;
  /** Maximum number of questions per call. All further questions wait for the next call. */
  maxTogether: number;
};

type PendingQuestion<Question, Answer> = {
  question: Question;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
};

/**
 * Batches questions, but only under load: there's no timer, and a question that arrives alone is answered alone. The queue is bounded by
 * the number of requests that the server accepts.
 */
export function coalesce<Question, Answer>(options: CoalesceOptions<Question, Answer>): Ask<Question, Answer> {
  const waiting: PendingQuestion<Question, Answer>[] = [];
  let underWay = 0;
  const start = async () => {
    underWay += 1;
    while (waiting.length > 0) {
      const together = waiting.splice(0, options.maxTogether);
      try {
        const answers = await options.answer(together.map(({ question }) => question));
        if (answers.length !== together.length) {
          throw new Error(`${together.length} questions returned ${answers.length} answers`);
        }
        for (const [index, { resolve }] of together.entries()) resolve(answers[index] as Answer);
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    underWay -= 1;
  };
  return (question) =>
    new Promise((resolve, reject) => {
      waiting.push({ question, resolve, reject });
      if (underWay < options.maxUnderWay) void start();
    });
}

/**
 * Maps items in order, `size` at a time. The next group starts when the previous one is complete. After the first rejection, it throws and
 * starts no more groups. After each group, `onGroup` is called with the number of finished items.
 */
export async function inGroups<Item, Result>(
  items: readonly Item[],
  size: number,
  map: (item: Item) => Promise<Result>,
  onGroup: (done: number) => void = () => undefined,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += size) {
    results.push(...(await Promise.all(items.slice(start, start + size).map((item) => map(item)))));
    onGroup(results.length);
  }
  return results;
}

export type Slices<Item> = ReturnType<typeof inSlices<Item>>;

/**
 * Runs `work` for many items without blocking the process: after every `sliceMs` of work, it yields to the event loop. `work` must not
 * throw. Adding an item that is already waiting has no effect.
 */
export function inSlices<Item>(sliceMs: number, work: (item: Item) => void) {
  const waiting = new Set<Item>();
  let isPlanned = false;
  const plan = () => {
    if (isPlanned || waiting.size === 0) return;
    isPlanned = true;
    setImmediate(doSlice);
  };
  const doSlice = () => {
    const endMs = performance.now() + sliceMs;
    for (const item of waiting) {
      waiting.delete(item);
      work(item);
      if (performance.now() >= endMs) break;
    }
    isPlanned = false;
    plan();
  };
  return {
    add: (item: Item) => {
      waiting.add(item);
      plan();
    },
    remove: (item: Item) => void waiting.delete(item),
  };
}

/** If the event loop is busy, background work gets 1/96 of it. */
const SHARE = 96;
const MAX_REST_MS = 2000;
/** If a rest were shorter, the event loop could seem idle between two requests, even if there are a thousand of them. */
const LEAST_REST_MS = 10;
/**
 * Below this utilisation, the event loop counts as idle. If the database is the bottleneck, the event loop is mostly waiting, so it isn't
 * busy.
 */
const BUSY = 0.15;

/**
 * Passes on the items of `source`, and rests briefly after each one to yield to the rest of the process. If the event loop is busy with
 * other work, it rests up to 96 times as long as the item took, but at most two seconds.
 */
export async function* givingWay<Item>(source: AsyncIterable<Item>): AsyncGenerator<Item> {
  let startedMs = performance.now();
  for await (const item of source) {
    const tookMs = performance.now() - startedMs;
    yield item;
    await rest(tookMs);
    startedMs = performance.now();
  }
}

async function rest(tookMs: number): Promise<void> {
  const untilMs = performance.now() + Math.min(MAX_REST_MS, tookMs * SHARE);
  do {
    const before = performance.eventLoopUtilization();
    await sleep(Math.max(LEAST_REST_MS, tookMs / 4));
    if (performance.eventLoopUtilization(before).utilization < BUSY) return;
  } while (performance.now() < untilMs);
}

/** Waits for `work`. If the signal is aborted, rejects with its reason and ignores the result of `work`. */
export async function unlessAborted<Output>(signal: AbortSignal, work: () => Promise<Output>): Promise<Output> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

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

export type RequestShare = ReturnType<typeof createRequestShare>;

/**
 * Work counts as late if at least `LATE` of the last `LAST` pieces were late. A single late piece may be due to the disk or the garbage
 * collector.
 */
const [LATE, LAST] = [2, 3];
/** After the last late piece, requests get no share for HOLD_MS. Then their share grows gradually over RECOVER_MS. */
const [HOLD_MS, RECOVER_MS] = [5000, 5000];

/**
 * Determines what share of the process's time requests may use, because the watcher and webhooks may run in the same process. The share is
 * 1 as long as the watcher and webhooks are on time or have nothing to do, and 0 while they are late.
 */
export function createRequestShare(nowMs: () => number = () => performance.now()) {
  let last: boolean[] = [];
  let behindAtMs = Number.NEGATIVE_INFINITY;
  return {
    /** Records how long a piece of the watcher's or the webhooks' work took. The piece was late if it took longer than `inTimeMs`. */
    onWork: (tookMs: number, inTimeMs: number) => {
      last = [...last.slice(1 - LAST), tookMs > inTimeMs];
      if (last.filter(Boolean).length >= LATE) behindAtMs = nowMs();
    },
    /** Records that the watcher or the webhooks are behind with their work. */
    onBehind: () => {
      behindAtMs = nowMs();
    },
    /** Returns a share from 0 to 1. */
    current: () => Math.min(1, Math.max(0, (nowMs() - behindAtMs - HOLD_MS) / RECOVER_MS)),
  };
}
