import { expect, test } from 'vitest';
import { createChannelPace } from './notifier.ts';

test('what comes one by one is sent so, and the sixth of a minute waits for a digest', () => {
  let nowMs = 0;
  const pace = createChannelPace(() => nowMs);
  for (let sent = 0; sent < 5; sent += 1) {
    expect(pace.next({ count: 1, wasHeld: false })).toBe('one');
    pace.sent('one');
    nowMs += 1000;
  }
  expect(pace.next({ count: 1, wasHeld: false })).toBe('all');
  pace.sent('all');
  nowMs += 14_999;
  expect(pace.next({ count: 30, wasHeld: false })).toBe('none');
  nowMs += 1;
  expect(pace.next({ count: 30, wasHeld: false })).toBe('all');
  nowMs = 60_000;
  expect(pace.next({ count: 1, wasHeld: false })).toBe('one');
});

test('a storm goes in one message from its first on, and so does what quiet hours held back', () => {
  const pace = createChannelPace(() => 0);
  expect(pace.next({ count: 5, wasHeld: false })).toBe('one');
  expect(pace.next({ count: 6, wasHeld: false })).toBe('all');
  expect(pace.next({ count: 2, wasHeld: true })).toBe('all');
  expect(pace.next({ count: 1, wasHeld: true })).toBe('one');
});
