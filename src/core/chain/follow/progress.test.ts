import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import { createProgress } from './follower.ts';
import type { FollowDeps } from './following.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function startProgress() {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'info', destination });
  const pool = { health: () => [] };
  const progress = createProgress({ network: 'devnet', metrics: createMetrics(), log, pool } as unknown as FollowDeps);
  const at = (number: number, nodeSolid: number) => {
    const position = { head: number, ownSolid: number, nodeSolid, processed: number, open: null };
    progress.onBehind(position);
    progress.onCatchUp(position);
    return progress.status(position).catchUp;
  };
  return { at, lines };
}

test('a rate is told once blocks were recorded in a time, and not as zero before', () => {
  const { at, lines } = startProgress();
  const unknown = { blocksPerSecond: null, secondsLeft: null };
  expect(at(100, 1000)).toEqual(unknown);
  vi.advanceTimersByTime(11_000);
  expect(at(100, 1000)).toEqual(unknown);
  expect(lines).toEqual([expect.objectContaining({ processed: 100, left: 900 })]);
  expect(lines[0]).not.toHaveProperty('blocksPerSecond');
  expect(lines[0]).not.toHaveProperty('secondsLeft');
  vi.advanceTimersByTime(11_000);
  expect(at(320, 1000)).toEqual({ blocksPerSecond: 10, secondsLeft: 68 });
  expect(lines[1]).toMatchObject({ left: 680, blocksPerSecond: 10, secondsLeft: 68 });
  expect(at(1000, 1000)).toEqual(unknown);
});

test('the time that is left takes the growth of the chain into account', () => {
  const { at } = startProgress();
  at(100, 1000);
  vi.advanceTimersByTime(10_000);
  expect(at(200, 1040)).toEqual({ blocksPerSecond: 10, secondsLeft: 140 });
  vi.advanceTimersByTime(10_000);
  expect(at(300, 1200)).toEqual({ blocksPerSecond: 10, secondsLeft: null });
});
