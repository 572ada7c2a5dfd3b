import { expect, test } from 'vitest';
import { createBlindness } from './watcher.ts';

const BLOCK_MS = 3000;

function startBlindness() {
  let nowMs = 1000;
  const blindness = createBlindness(BLOCK_MS, () => nowMs);
  blindness.begin(null);
  return {
    ...blindness,
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
  expect(reason()).toBe('the newest block that Quittance has read is 3609 s old');

  onHead(8);
  onLook(0);
  expect(reason()).toBe(null);
  for (let ageMs = 0; ageMs <= 60_000; ageMs += 3000) {
    wait(3000);
    onLook(ageMs);
    expect(reason()).toBe(null);
  }
  onLook(60_001);
  expect(reason()).toBe('the newest block that Quittance has read is 60 s old');
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
  expect(reason()).toContain('3600 s old');
  onHead(6);
  onLook(0);
  expect(reason()).toBe(null);
});
