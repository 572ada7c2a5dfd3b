import { expect, onTestFinished, test, vi } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import type { Database } from '../../store/db/database.ts';
import { createBlindness, createVisibility } from './watcher.ts';

const BLOCK_MS = 3000;
const START_MS = 10 * 3_600_000;

function startBlindness() {
  let nowMs = 1000;
  const blindness = createBlindness(BLOCK_MS, () => nowMs);
  blindness.begin(null);
  return {
    ...blindness,
    /** The newest examined block is this old. */
    onLook: (ageMs: number) => blindness.onLook({ ageMs, time: unixMs(START_MS + nowMs - ageMs) }),
    /** Time passes, and looks fail meanwhile as often as a watcher looks while a node refuses. */
    failFor: (ms: number) => {
      for (const end = nowMs + ms; nowMs < end; nowMs += 250) blindness.onFailure('refused');
    },
    wait: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('looks that fail several times within a second raise nothing, and from three block times on they do', () => {
  const { reason, failFor, onLook } = startBlindness();
  failFor(2 * BLOCK_MS);
  expect(reason()).toBe(null);
  onLook(3000);
  failFor(3 * BLOCK_MS);
  expect(reason()).toBe(null);
  failFor(250);
  expect(reason()).toBe('refused');
  onLook(3000);
  expect(reason()).toBe(null);
});

test('one look that failed for long is no blindness, three are', () => {
  const { reason, onFailure, wait } = startBlindness();
  for (const expected of [null, null, 'silent']) {
    wait(15_000);
    onFailure('silent');
    expect(reason()).toBe(expected);
  }
});

test('a service that starts from an old block, or comes back, and works through the blocks is not blind', () => {
  const { reason, onHead, onLook, wait } = startBlindness();
  for (let number = 1; number <= 40; number += 1) {
    onHead(number);
    onLook(180_000 - number * 3000);
    wait(1000);
    expect(reason()).toBe(null);
  }
});

test('an old newest block, and no further one, is blindness: after three block times at the start, at once when blocks stop', () => {
  const { reason, onHead, onLook, wait } = startBlindness();
  onHead(7);
  onLook(3_600_000);
  expect(reason()).toBe(null);
  wait(3 * BLOCK_MS);
  onLook(3_609_000);
  const created = 'the newest block that Quittance has read was created at';
  expect(reason()).toBe(`${created} 1970-01-01T09:00:01.000Z`);
  wait(60_000);
  onLook(3_669_000);
  expect(reason()).toBe(`${created} 1970-01-01T09:00:01.000Z`);

  onHead(8);
  onLook(0);
  expect(reason()).toBe(null);
  for (let ageMs = 0; ageMs <= 60_000; ageMs += 3000) {
    wait(3000);
    onLook(ageMs);
    expect(reason()).toBe(null);
  }
  onLook(60_001);
  expect(reason()).toContain(created);
});

test('a node that is far behind and shows a block now and then leaves the operator blind, and one that caught up does not', () => {
  const { reason, onHead, onLook, wait } = startBlindness();
  for (let number = 1; number <= 10; number += 1) {
    wait(10_000);
    onLook(3_600_000 + number * 7000);
    expect(reason()).not.toBe(null);
    onHead(number);
    onLook(3_600_000 + number * 7000);
    expect(reason()).not.toBe(null);
  }
  onHead(2000);
  onLook(3000);
  expect(reason()).toBe(null);
});

test('blocks that were verified before are no news when they are verified again', () => {
  const { reason, onHead, onLook, wait } = startBlindness();
  onHead(200);
  wait(3 * BLOCK_MS);
  for (const number of [100, 150, 200]) onHead(number);
  onLook(3_600_000);
  expect(reason()).not.toBe(null);
});

test('what a former process was blind for goes on until a fresh block is examined', () => {
  const { reason, begin, onHead, onLook } = startBlindness();
  begin('nobody answered');
  expect(reason()).toBe('nobody answered');
  onHead(5);
  onLook(3_600_000);
  expect(reason()).toContain('1970-01-01T09:00:01.000Z');
  onHead(6);
  onLook(0);
  expect(reason()).toBe(null);
});

test('while the chain is not visible, the alarm shows a new reason within a minute, and is written once a minute', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const raised: string[] = [];
  const { onLook, onFailure, notify } = createVisibility({
    ...{ db: {} as Database, network: 'devnet', blockMs: BLOCK_MS },
    ...{ log: createLogger({ level: 'silent' }), metrics: createMetrics() },
    alarms: {
      refresh: async () => undefined,
      raise: async (_kind, _subject, detail) => void raised.push(detail),
      resolve: async () => undefined,
    },
  });
  const failFor = async (ms: number, why: string) => {
    for (let passed = 0; passed < ms; passed += 1000) {
      vi.advanceTimersByTime(1000);
      onFailure(why);
      await notify();
    }
  };
  await failFor(15_000, 'the first node refuses');
  await failFor(45_000, 'the second node refuses');
  const alarm = (why: string) => `payments are not confirmed, and invoices do not expire: ${why}`;
  expect(raised).toEqual([alarm('the first node refuses')]);
  await failFor(30_000, 'the third node refuses');
  expect(raised).toEqual(['first', 'third'].map((which) => alarm(`the ${which} node refuses`)));
  await failFor(60_000, 'the third node refuses');
  expect(raised).toHaveLength(3);
  onLook({ ageMs: 0, time: unixMs(START_MS) });
  expect(await notify()).toBe('regained');
  await failFor(15_000, 'the first node refuses');
  expect(raised.slice(3)).toEqual([alarm('the first node refuses')]);
});
