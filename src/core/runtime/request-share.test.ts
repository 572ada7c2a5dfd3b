import { expect, test } from 'vitest';
import { createRequestShare } from './request-share.ts';

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
