import { expect, test } from 'vitest';
import { createInFlight } from './catch-up.ts';

/** How the way to a node is: a range takes `wayMs` and, one after the other, `workMs`. */
type Way = { wayMs: number; workMs: number };

/** Sends ranges as long as there is room, each when another is there; tells how many were under way at once in the end, and how many came a second. */
function send(inFlight: ReturnType<typeof createInFlight>, clock: { ms: number }, { wayMs, workMs }: Way, count = 400) {
  const underWay: { thereMs: number; asked: ReturnType<typeof inFlight.begin> }[] = [];
  const startedMs = clock.ms;
  let freeMs = clock.ms;
  let most = 0;
  for (let done = 0; done < count; done += 1) {
    while (inFlight.hasRoom()) {
      freeMs = Math.max(freeMs, clock.ms + wayMs) + workMs;
      underWay.push({ thereMs: freeMs, asked: inFlight.begin() });
    }
    if (done > count / 2) most = Math.max(most, underWay.length);
    const first = underWay.shift();
    if (first === undefined) throw new Error('nothing is under way');
    clock.ms = first.thereMs;
    first.asked.onAnswer();
    first.asked.onEnd();
  }
  const perSecond = (count * 1000) / (clock.ms - startedMs);
  for (const { asked } of underWay) asked.onEnd();
  return { most, perSecond };
}

function start() {
  const clock = { ms: 0 };
  return { clock, inFlight: createInFlight({ most: 12, wait: [2, 4] }, () => clock.ms) };
}

test.each([
  [100, 40],
  [300, 30],
  [600, 60],
])(
  'with %i ms of way and %i ms of work a range, hardly any time passes in which nothing is there to do',
  (wayMs, workMs) => {
    const { clock, inFlight } = start();
    expect(send(inFlight, clock, { wayMs, workMs }).perSecond).toBeGreaterThan((0.85 * 1000) / workMs);
  },
);

test('no more are under way than keep a node busy that is near, or limited to so many requests a second', () => {
  for (const way of [
    { wayMs: 1, workMs: 40 },
    { wayMs: 100, workMs: 470 },
  ]) {
    const { clock, inFlight } = start();
    expect(send(inFlight, clock, way, 1000).most).toBeLessThanOrEqual(7);
  }
});

test('a way that becomes longer, and shorter again, is followed', () => {
  const { clock, inFlight } = start();
  send(inFlight, clock, { wayMs: 20, workMs: 40 });
  expect(send(inFlight, clock, { wayMs: 400, workMs: 40 }, 800).perSecond).toBeGreaterThan(17);
  expect(send(inFlight, clock, { wayMs: 1, workMs: 40 }, 800).most).toBeLessThanOrEqual(12);
});

test('a node that fails at everything is asked for no more at once than at first', () => {
  const { inFlight } = start();
  for (let round = 0; round < 50; round += 1) {
    const asked = [inFlight.begin(), inFlight.begin()];
    expect(inFlight.hasRoom()).toBe(false);
    for (const each of asked) each.onEnd();
  }
  expect(inFlight.leastMs()).toBe(Number.POSITIVE_INFINITY);
});
