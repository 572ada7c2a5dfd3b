import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { longTest } from '../../../test/support/some-cases.ts';
import { coalesce, createRequestShare, givingWay, inGroups, inSlices } from './concurrency.ts';

/** Answers each number with its double, once the test releases it. */
function createOracle() {
  const asked: number[][] = [];
  const releases: (() => void)[] = [];
  const answer = async (questions: number[]) => {
    asked.push(questions);
    await new Promise<void>((resolve) => releases.push(resolve));
    if (questions.includes(13)) throw new Error('unlucky');
    return questions.map((number) => number * 2);
  };
  return { asked, answer, release: () => releases.shift()?.() };
}

test('what is asked while enough calls are under way is asked together, and each gets its own answer', async () => {
  const { asked, answer, release } = createOracle();
  const ask = coalesce({ answer, maxUnderWay: 2, maxTogether: 3 });
  const answers = Promise.all([1, 2, 3, 4, 5, 6].map(ask));
  expect(asked).toEqual([[1], [2]]);
  for (let i = 0; i < 4; i++) {
    release();
    await turn();
  }
  expect(await answers).toEqual([2, 4, 6, 8, 10, 12]);
  expect(asked).toEqual([[1], [2], [3, 4, 5], [6]]);
});

test('a failure reaches exactly those who were asked together, and the next questions are answered', async () => {
  const { answer, release } = createOracle();
  const ask = coalesce({ answer, maxUnderWay: 1, maxTogether: 2 });
  const answers = Promise.allSettled([1, 13, 2, 3].map(ask));
  for (let i = 0; i < 3; i++) {
    release();
    await turn();
  }
  expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
  const later = ask(4);
  release();
  expect(await later).toBe(8);
});

test('items are mapped in their order, a group at the same time', async () => {
  let running = 0;
  let most = 0;
  const done: number[] = [];
  const map = async (item: number) => {
    running += 1;
    most = Math.max(most, running);
    // Later items of a group are ready earlier.
    for (let turn = 0; turn < 10 - item; turn += 1) await Promise.resolve();
    running -= 1;
    return item * 2;
  };
  expect(await inGroups([1, 2, 3, 4, 5, 6, 7], 3, map, (count) => done.push(count))).toEqual([2, 4, 6, 8, 10, 12, 14]);
  expect(most).toBe(3);
  expect(done).toEqual([3, 6, 7]);
  expect(await inGroups([], 3, map)).toEqual([]);
});

test('after a failure no further group starts', async () => {
  const started: number[] = [];
  const map = async (item: number) => {
    started.push(item);
    if (item === 2) throw new Error('2 failed');
    return item;
  };
  await expect(inGroups([1, 2, 3, 4], 2, map)).rejects.toThrow('2 failed');
  expect(started).toEqual([1, 2]);
});

const NEVER_MS = 3_600_000;

test('many items are done together, each once however often it was added, and none that was removed', async () => {
  const done: number[] = [];
  const slices = inSlices<number>(NEVER_MS, (item) => done.push(item));
  for (const item of [1, 2, 1, 3, 4, 5, 2]) slices.add(item);
  slices.remove(5);
  expect(done).toEqual([]);
  await turn();
  expect(done).toEqual([1, 2, 3, 4]);
});

test('when the time of a slice is over, whatever else there is to do comes before the next item', async () => {
  const done: string[] = [];
  const slices = inSlices<string>(0, (item) => done.push(item));
  for (const item of ['first', 'second', 'third']) slices.add(item);
  for (const count of [1, 2, 3]) {
    await turn();
    expect(done).toHaveLength(count);
  }
});

test('an item may be added again by its own work', async () => {
  let times = 0;
  const slices = inSlices<string>(0, (item) => {
    times += 1;
    if (times < 3) slices.add(item);
  });
  slices.add('again');
  await turn();
  await turn();
  await turn();
  expect(times).toBe(3);
});

async function* numbers(count: number) {
  for (let number = 0; number < count; number += 1) {
    const untilMs = performance.now() + 3;
    while (performance.now() < untilMs);
    yield number;
  }
}

test('everything is handed on, in order, and an end before the last one ends the source', async () => {
  const seen: number[] = [];
  for await (const number of givingWay(numbers(5))) seen.push(number);
  expect(seen).toEqual([0, 1, 2, 3, 4]);
  for await (const number of givingWay(numbers(5))) if (number === 1) break;
});

longTest('a busy event loop gets far more turns between two items than an idle one', async () => {
  // Time passes only by work, and not by waiting for the machine.
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      nowMs += 1;
      turns += 1;
      await turn();
    }
  })();
  const items = async function* () {
    for (let number = 0; number < 4; number += 1) {
      nowMs += 3;
      yield number;
    }
  };
  for await (const _ of givingWay(items()));
  isOver = true;
  await others;
  // A share of one in 97.
  expect(turns).toBeGreaterThanOrEqual(4 * 3 * 96);
});

/** A share with a clock that the test controls. `work` records pieces of work, which are late beyond 10 ms. */
function openShare() {
  const state = { nowMs: 0 };
  const share = createRequestShare(() => state.nowMs);
  const work = (...took: number[]) => {
    for (const tookMs of took) share.onWork(tookMs, 10);
  };
  return { share, work, state };
}

test('requests have everything while other work is in time, and while there is none', () => {
  const { share, work } = openShare();
  expect(share.current()).toBe(1);
  work(1, 10, 9);
  expect(share.current()).toBe(1);
});

test('one late piece of work among many takes nothing from requests', () => {
  const { share, work } = openShare();
  work(1, 500, 1, 1, 500, 1, 1);
  expect(share.current()).toBe(1);
});

test('two late pieces of three take all that requests can miss, and they get it back by and by', () => {
  const { share, work, state } = openShare();
  work(500, 1, 500);
  expect(share.current()).toBe(0);
  state.nowMs = 5000;
  expect(share.current()).toBe(0);
  state.nowMs = 7500;
  expect(share.current()).toBe(0.5);
  state.nowMs = 10_000;
  expect(share.current()).toBe(1);
});

test('work that lags behind takes from requests at once, and for as long as it does', () => {
  const { share, work, state } = openShare();
  for (; state.nowMs < 60_000; state.nowMs += 1000) {
    share.onBehind();
    work(1);
    expect(share.current()).toBe(0);
  }
});
