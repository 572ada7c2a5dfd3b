import { describe, expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { createBatchPace } from './head.ts';

const BLOCK_MS = 3000;
const GENESIS_MS = 1_800_000_000_000;
/** Until the pace has learnt. */
const WARM_UP = 40;

type Chain = {
  /** How far our clock is ahead of the producers'. */
  skewMs: number;
  /** How long after its time a block can be read, by its place. */
  delayMs(place: number): number;
  /** Slots that pass without a block before this place. */
  missedSlots?(place: number): number;
  /** The time between two blocks, where it is not the one that the pace was told. */
  stepMs?: number;
};

/** Follows some hundred blocks and tells what it cost: requests in vain, and how long blocks waited to be read, after the warm-up. */
function follow({ skewMs, delayMs, missedSlots = () => 0, stepMs = BLOCK_MS }: Chain, count = 400) {
  const pace = createBatchPace(BLOCK_MS, () => 0.25);
  let trueMs = GENESIS_MS;
  let blockMs = GENESIS_MS;
  const latencies: number[] = [];
  let misses = 0;
  for (let place = 0; place < count; place += 1) {
    blockMs += stepMs * (1 + missedSlots(place));
    const shownMs = blockMs + delayMs(place);
    for (let tries = 0; trueMs < shownMs; tries += 1) {
      if (tries > 100) throw new Error(`block ${place} was asked for ${tries} times in vain`);
      if (place >= WARM_UP) misses += 1;
      trueMs += pace.onMiss(trueMs + skewMs);
    }
    if (place >= WARM_UP) latencies.push(trueMs - shownMs);
    trueMs += pace.onBlock(unixMs(blockMs), trueMs + skewMs, false);
  }
  const sorted = latencies.sort((left, right) => left - right);
  return {
    missesPerBlock: misses / latencies.length,
    median: sorted[Math.floor(sorted.length / 2)] ?? 0,
    worst: sorted.at(-1) ?? 0,
  };
}

describe.each([-10_000, -1500, 0, 1500, 10_000])('with a clock that is %i ms ahead', (skewMs) => {
  test('a block is read soon after it can be, with few requests in vain', () => {
    const { missesPerBlock, median, worst } = follow({ skewMs, delayMs: () => 400 });
    expect(missesPerBlock).toBeLessThan(0.3);
    expect(median).toBeLessThan(BLOCK_MS / 10);
    expect(worst).toBeLessThan(BLOCK_MS / 4);
  });

  test('slots that pass without a block cost a few requests and no more', () => {
    const { missesPerBlock, median } = follow({
      skewMs,
      delayMs: (place) => 300 + (place % 3) * 30,
      missedSlots: (place) => (place % 27 === 5 ? 1 : 0),
    });
    expect(missesPerBlock).toBeLessThan(0.8);
    expect(median).toBeLessThan(BLOCK_MS / 8);
  });

  test('a node that becomes slower, and quick again, is followed', () => {
    const { median } = follow({ skewMs, delayMs: (place) => (place > 100 && place < 200 ? 1500 : 300) });
    expect(median).toBeLessThan(BLOCK_MS / 8);
  });
});

test.each([-10_000, 0, 10_000])(
  'a chain that is faster than we were told is followed at its own pace, with a clock that is %i ms ahead',
  (skewMs) => {
    for (const stepMs of [500, 1000]) {
      const { missesPerBlock, median, worst } = follow({ skewMs, delayMs: () => 200, stepMs });
      expect(missesPerBlock).toBeLessThan(0.3);
      expect(median).toBeLessThan(stepMs / 10);
      expect(worst).toBeLessThan(stepMs / 2);
    }
  },
);

test.each([-10_000, 0, 10_000])(
  'with a clock that is %i ms ahead, a node that was twelve blocks behind is followed at once when it is not any more',
  (skewMs) => {
    const pace = createBatchPace(BLOCK_MS, () => 0.25);
    const wellAgainMs = GENESIS_MS + 100 * BLOCK_MS;
    let trueMs = GENESIS_MS;
    let late = 0;
    for (let place = 1; place < 200; place += 1) {
      const blockMs = GENESIS_MS + place * BLOCK_MS;
      const behindMs = place > 40 ? 12 * BLOCK_MS : 0;
      const shownMs = Math.min(blockMs + 300 + behindMs, Math.max(blockMs + 300, wellAgainMs));
      while (trueMs < shownMs) trueMs += pace.onMiss(trueMs + skewMs);
      if (shownMs >= wellAgainMs && trueMs - blockMs > 2 * BLOCK_MS) late += 1;
      trueMs += pace.onBlock(unixMs(blockMs), trueMs + skewMs, false);
    }
    // Those that it held back, and until the next one is only tried.
    expect(late).toBeLessThanOrEqual(12 + 8 + 4);
    expect(trueMs - (GENESIS_MS + 199 * BLOCK_MS)).toBeLessThan(2 * BLOCK_MS);
  },
);

test('the pause after a block is never longer than a block time, whatever the clocks say', () => {
  const pace = createBatchPace(BLOCK_MS, () => 0.25);
  for (const aheadMs of [-3_600_000, -1, 0, 1, 3_600_000]) {
    const pauseMs = pace.onBlock(unixMs(GENESIS_MS + aheadMs), GENESIS_MS, false);
    expect(pauseMs).toBeGreaterThanOrEqual(0);
    expect(pauseMs).toBeLessThanOrEqual(BLOCK_MS);
  }
});

test('pauses between requests in vain grow to a block time and not beyond', () => {
  const pace = createBatchPace(BLOCK_MS, () => 0.25);
  let nowMs = GENESIS_MS;
  const pauses = Array.from({ length: 30 }, () => {
    const pauseMs = pace.onMiss(nowMs);
    nowMs += pauseMs;
    return pauseMs;
  });
  expect(pauses[0]).toBeLessThan(BLOCK_MS / 8);
  expect(Math.min(...pauses)).toBeGreaterThan(0);
  expect(Math.max(...pauses)).toBe(BLOCK_MS);
});

test('a missing block is overdue within its block time, so that another node can be asked, and no more once a block came', () => {
  const pace = createBatchPace(BLOCK_MS, () => 0.25);
  expect(pace.isOverdue(GENESIS_MS)).toBe(false);
  pace.onMiss(GENESIS_MS);
  expect(pace.isOverdue(GENESIS_MS + 100)).toBe(false);
  expect(pace.isOverdue(GENESIS_MS + BLOCK_MS)).toBe(true);
  pace.onBlock(unixMs(GENESIS_MS), GENESIS_MS + BLOCK_MS, true);
  expect(pace.isOverdue(GENESIS_MS + 2 * BLOCK_MS)).toBe(false);
});

describe('requests for what is irreversible', () => {
  const spent = (earnedPerBlock: number, isPayerWaiting: (place: number) => boolean, count: number) => {
    const pace = createBatchPace(BLOCK_MS, () => earnedPerBlock);
    let requests = 0;
    for (let place = 0; place < count; place += 1) {
      const nowMs = GENESIS_MS + place * BLOCK_MS;
      pace.onBlock(unixMs(nowMs), nowMs, false);
      // The watcher looks several times a block.
      for (let look = 0; look < 4; look += 1) {
        if (pace.maySpend(isPayerWaiting(place), nowMs + (look * BLOCK_MS) / 4)) requests += 1;
      }
    }
    return requests;
  };

  test.each([0.25, 0.35, 1])(
    'payers who wait all the time cost %f a block, but for the few that were saved',
    (earned) => {
      const count = 2000;
      expect(spent(earned, () => true, count)).toBeLessThanOrEqual(earned * count + 25);
      expect(spent(earned, () => true, count)).toBeGreaterThan(0.8 * earned * count);
    },
  );

  test('while nobody waits it is one in eight blocks', () => {
    expect(spent(0.25, () => false, 800)).toBe(100);
  });

  test('after a quiet time the first payer does not wait for a turn', () => {
    const pace = createBatchPace(BLOCK_MS, () => 0.25);
    expect(pace.maySpend(false, GENESIS_MS)).toBe(true);
    expect(pace.maySpend(false, GENESIS_MS + 1)).toBe(false);
    expect(pace.maySpend(true, GENESIS_MS + 2)).toBe(true);
  });
});
