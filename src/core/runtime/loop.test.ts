import { expect, test } from 'vitest';
import { createLogger } from './log.ts';
import { backoffMs, createLoopHealth, startLoop } from './loop.ts';

test('a loop that failed says that it works again only after a round that went well', async () => {
  const logged: { msg: string }[] = [];
  const log = createLogger({ level: 'info', destination: { write: (line) => void logged.push(JSON.parse(line)) } });
  const rounds: (number | { failedPauseMs: number } | 'throw')[] = [
    'throw',
    { failedPauseMs: 1 },
    { failedPauseMs: 1 },
  ];
  let done = 0;
  const loop = startLoop({
    ...{ name: 'watcher', log, maxPauseMs: 1 },
    run: async () => {
      done += 1;
      const round = rounds.shift() ?? 1;
      if (round === 'throw') throw new Error('no node answers');
      return round;
    },
  });
  const failed = { level: 'warn', msg: 'watcher failed; retrying' };
  await expect.poll(() => done, { interval: 1 }).toBe(3);
  expect(logged).toEqual([expect.objectContaining(failed)]);
  await expect.poll(() => done, { interval: 1 }).toBeGreaterThan(5);
  await loop.stop();
  expect(logged).toEqual([
    expect.objectContaining(failed),
    expect.objectContaining({ level: 'info', failures: 1, msg: 'watcher works again' }),
  ]);
});

test('a round that has nothing to do yet does not end a failure; a round that went well does', async () => {
  const log = createLogger({ level: 'silent' });
  const health = createLoopHealth();
  let next: 'throw' | 'idle' | 'well' = 'throw';
  let idle = 0;
  const loop = startLoop({
    ...{ name: 'books', log, maxPauseMs: 1, health },
    run: async () => {
      const round = next;
      if (round === 'well') return 1;
      if (round === 'idle') {
        idle += 1;
        return { idlePauseMs: 1 };
      }
      next = 'idle';
      throw new Error('refused');
    },
  });
  await expect.poll(() => idle, { interval: 1 }).toBeGreaterThan(2);
  expect(health.look(0)).toEqual([{ name: 'books', error: new Error('refused') }]);
  next = 'well';
  await expect.poll(() => health.look(0), { interval: 1 }).toEqual([]);
  await loop.stop();
});

test('a pause doubles with each failure, and not beyond the longest', () => {
  const pauses = [1, 2, 3, 4, 5, 1_000_000].map((failures) => backoffMs(failures, { firstMs: 250, longestMs: 1500 }));
  expect(pauses).toEqual([250, 500, 1000, 1500, 1500, 1500]);
});
