import { setTimeout as sleep } from 'node:timers/promises';

/** If the event loop is busy, background work gets one part in 96 of it. */
const SHARE = 96;
const MAX_REST_MS = 2000;
/** With a shorter interval, an event loop could seem idle between two of a thousand requests. */
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
