import { expect, test } from 'vitest';
import { createEventWaits, type Waiter } from './event-waits.ts';

const LIMITS = { ofKey: 2, total: 3, lookMs: 3_600_000 };
const WAITER: Waiter = { keyId: 'a key', projectId: 'project', types: null };
/** Longer than any test. */
const LONG_MS = 3_600_000;
const ignore = () => undefined;

test('what is heard before the first look, or between two, ends the next', async () => {
  const waits = createEventWaits(ignore, LIMITS);
  const wait = waits.open(WAITER, LONG_MS);
  waits.hear('project ping');
  await wait?.look();
  waits.hear('project ping');
  await wait?.look();
  expect(wait?.isOver()).toBe(false);
});

test('a look ends for the project, for the types that are asked for, and when something may have been missed', async () => {
  const waits = createEventWaits(ignore, { ...LIMITS, ofKey: 10, total: 10 });
  const looked: string[] = [];
  const look = (name: string, waiter: Partial<Waiter>) =>
    waits
      .open({ ...WAITER, ...waiter }, LONG_MS)
      ?.look()
      .then(() => looked.push(name));
  const looks = [look('all', {}), look('paid', { types: ['invoice.paid'] }), look('other', { projectId: 'another' })];
  waits.hear('project ping');
  await looks[0];
  expect(looked).toEqual(['all']);
  waits.hear('project invoice.paid');
  await looks[1];
  expect(looked).toEqual(['all', 'paid']);
  waits.hear(null);
  await looks[2];
});

test('where nothing is heard a wait looks again now and then, and at its end', async () => {
  const often = createEventWaits(ignore, { ...LIMITS, lookMs: 1 }).open(WAITER, LONG_MS);
  await often?.look();
  expect(often?.isOver()).toBe(false);
  const short = createEventWaits(ignore, LIMITS).open(WAITER, 1);
  while (short?.isOver() === false) await short.look();
});

test('a key has some places, all have more together, and a wait that is closed gives its place back', () => {
  const waits = createEventWaits(ignore, LIMITS);
  const open = (keyId: string) => waits.open({ ...WAITER, keyId }, LONG_MS);
  const [first] = [open('one'), open('one')];
  expect(open('one')).toBeNull();
  expect(open('another')).not.toBeNull();
  expect(open('another')).toBeNull();
  first?.close();
  expect(open('another')).not.toBeNull();
});

test('how many wait is told with each that begins or ends', () => {
  const counts: number[] = [];
  const waits = createEventWaits((count) => counts.push(count), LIMITS);
  const open = () => waits.open(WAITER, LONG_MS);
  const [first, second] = [open(), open()];
  expect(open()).toBeNull();
  first?.close();
  second?.close();
  second?.close();
  expect(counts).toEqual([1, 2, 1, 0, 0]);
});

test('a stop ends every wait, and none is opened any more', async () => {
  const waits = createEventWaits(ignore, LIMITS);
  const wait = waits.open(WAITER, LONG_MS);
  waits.stop();
  await wait?.look();
  expect([wait?.isOver(), waits.open(WAITER, LONG_MS)]).toEqual([true, null]);
});
