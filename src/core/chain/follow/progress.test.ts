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
  const atHead = (number: number, nodeSolid: number, isNewest: boolean) => {
    const position = { head: number + 18, ownSolid: number, nodeSolid, processed: number, open: null };
    progress.onHead(position, { added: 1, isNewest });
    return progress.status(position).catchUp;
  };
  return { at, atHead, lines };
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

test('a watcher has caught up only when it has recorded the last irreversible block', () => {
  const { at, atHead, lines } = startProgress();
  at(100, 1000);
  vi.advanceTimersByTime(9000);
  at(980, 1000);
  vi.advanceTimersByTime(1000);
  expect(atHead(982, 1000, false)).toEqual({ blocksPerSecond: 88.2, secondsLeft: 1 });
  expect(lines).toEqual([expect.objectContaining({ msg: 'catching up with the chain', left: 18 })]);
  expect(atHead(1000, 1000, false)).toBe(null);
  atHead(1001, 1001, true);
  expect(lines.slice(1)).toEqual([expect.objectContaining({ msg: 'caught up with the chain', processed: 1000 })]);
});

test('blocks that wait at the newest block are not counted as a catch-up', () => {
  const { at, atHead, lines } = startProgress();
  at(100, 1000);
  expect(atHead(900, 1000, true)).toBe(null);
  expect(atHead(900, 1001, false)).toBe(null);
  expect(lines).toEqual([expect.objectContaining({ msg: 'read up to the newest block', left: 100 })]);
});
