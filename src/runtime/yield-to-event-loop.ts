import { setTimeout as sleep } from 'node:timers/promises';

/** Work beside the answers may take this share of a busy event loop: one part of so many. */
const SHARE = 96;
const MAX_REST_MS = 2000;
/** In a shorter while an event loop may seem idle between two of a thousand requests. */
const LEAST_REST_MS = 10;
/** An event loop that works less than this has time for us. Where the database is what is busy, the loop of those who wait for it is not. */
const BUSY = 0.15;

/**
 * Hands on what `source` makes, and gives way to the rest of the process: after each item it rests a moment, and while the event loop is
 * busy with others, up to 96 times as long as the item took, at most two seconds.
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
