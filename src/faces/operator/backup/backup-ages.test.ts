import { expect, test } from 'vitest';
import { createBackupAges } from './backup-directory.ts';

const HOUR = 3_600_000;

function start() {
  const clock = { wall: 1_800_000_000_000, monotonic: 0 };
  const ages = createBackupAges({ now: () => clock.wall, monotonicMs: () => clock.monotonic });
  const list = (writtenAtMs: number) => ages.onListed([{ name: 'a', number: 1, writtenAtMs }]);
  const pass = (ms: number) => Object.assign(clock, { wall: clock.wall + ms, monotonic: clock.monotonic + ms });
  return { clock, ages, list, pass };
}

test('a backup that was made here is as old as the time since, whatever its file and a clock that was put back say', () => {
  const { clock, ages, list, pass } = start();
  ages.onMade('a');
  pass(HOUR);
  clock.wall -= 48 * HOUR;
  // The file server's clock is two days behind.
  list(clock.wall - 48 * HOUR);
  expect(ages.ofNewest()).toBe(HOUR);
});

test('a machine that slept counts its sleep, which its monotonic clock does not', () => {
  const { clock, ages, pass } = start();
  ages.onMade('a');
  pass(HOUR);
  clock.wall += 20 * HOUR;
  expect(ages.ofNewest()).toBe(21 * HOUR);
});

test('a backup of before the start is as old as its file says, and nobody knows of one of the future', () => {
  const first = start();
  first.list(first.clock.wall - 5 * HOUR);
  first.pass(HOUR);
  expect(first.ages.ofNewest()).toBe(6 * HOUR);
  const second = start();
  second.list(second.clock.wall + HOUR);
  expect(second.ages.ofNewest()).toBe(null);
  second.ages.onListed([]);
  expect(second.ages.ofNewest()).toBe(null);
});
