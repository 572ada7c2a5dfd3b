import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually } from '../../test/support/service.ts';
import { createLoadGate, type GateLimits, type Line } from './load-gate.ts';

const SMALL: GateLimits = {
  lagMs: { api: 100, page: 200, live: 200 },
  few: 0,
  underWay: { api: 4, page: 6, live: Number.POSITIVE_INFINITY },
  room: { api: 3, page: 20, live: 20 },
  maxWaitMs: 60_000,
  perTurn: 2,
  holdMs: 0,
  held: 100,
};

const LARGE = { api: 20, page: 20, live: 20 };

/** A gate with a lag that the test sets, and what became of each request, in order. */
function openGate(limits: Partial<GateLimits> = {}) {
  const seen: string[] = [];
  const state = { lagMs: 0 };
  const gate = createLoadGate({ lagMs: () => state.lagMs }, { ...SMALL, ...limits });
  const enter = (name: string, line: Line = 'api', isGone = false) =>
    gate.enter(line, {
      begin: () => seen.push(`${name} begins`),
      refuse: (why) => seen.push(`${name} is refused: ${why}`),
      isGone: () => isGone,
    });
  return { gate, enter, seen, state };
}

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
};

test('two begin in each turn of the event loop, and the others in the turns after it', async () => {
  const { enter, seen } = openGate({ room: LARGE });
  for (const name of ['a', 'b', 'c']) enter(name);
  expect(seen).toEqual([]);
  await nextTurn();
  expect(seen).toEqual(['a begins', 'b begins']);
  await nextTurn();
  expect(seen).toEqual(['a begins', 'b begins', 'c begins']);
});

test('no more are under way than the limit says, and the next begins when one has its answer', async () => {
  const { gate, enter, seen } = openGate({ room: LARGE });
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name);
  await turns(5);
  expect(seen).not.toContain('e begins');
  expect(gate.load()).toEqual({ underWay: 4, waiting: 1, held: 0 });
  gate.end('api');
  await turns(2);
  expect(seen).toContain('e begins');
});

test('who comes to a full line is refused; who waits there is served', async () => {
  const { enter, seen } = openGate();
  for (const name of ['a', 'b', 'c', 'd']) enter(name);
  await eventually(
    () => seen,
    (all) => all.length === 4,
  );
  expect(seen.toSorted()).toEqual(['a begins', 'b begins', 'c begins', 'd is refused: full']);
});

test('beyond its lag a line takes nobody, a page is still served where the API is not, and all are served when it is over', async () => {
  const { enter, seen, state } = openGate();
  state.lagMs = 150;
  enter('an order');
  enter('a page', 'page');
  await eventually(
    () => seen,
    (all) => all.length === 2,
  );
  expect(seen.toSorted()).toEqual(['a page begins', 'an order is refused: lag']);
  state.lagMs = 250;
  enter('another page', 'page');
  enter('a stream', 'live');
  await eventually(
    () => seen,
    (all) => all.length === 4,
  );
  expect(seen.slice(2).toSorted()).toEqual(['a stream is refused: lag', 'another page is refused: lag']);
  state.lagMs = 100;
  enter('the order again');
  await nextTurn();
  expect(seen.at(-1)).toBe('the order again begins');
});

test('a lag refuses nobody while few are in the house', async () => {
  const { enter, seen, state } = openGate({ room: LARGE, perTurn: 10, few: 2 });
  state.lagMs = 1000;
  for (const name of ['a', 'b', 'c']) enter(name);
  await eventually(
    () => seen,
    (all) => all.length === 3,
  );
  expect(seen.toSorted()).toEqual(['a begins', 'b begins', 'c is refused: lag']);
});

test('pages go first, and have room where the API has none', async () => {
  const { enter, seen } = openGate({ room: LARGE, perTurn: 10 });
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name);
  enter('a page', 'page');
  await turns(3);
  expect(seen).toEqual(['a page begins', 'a begins', 'b begins', 'c begins']);
  enter('another page', 'page');
  await turns(2);
  expect(seen.at(-1)).toBe('another page begins');
});

test('however many pages come, every fourth that begins is of the API', async () => {
  const { enter, seen } = openGate({ room: LARGE, perTurn: 4 });
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter(`page ${name}`, 'page');
  enter('an order');
  await nextTurn();
  expect(seen).toEqual(['page a begins', 'page b begins', 'page c begins', 'an order begins']);
});

test('streams are not under way once they have begun', async () => {
  const { gate, enter } = openGate({ room: LARGE, perTurn: 10 });
  for (let number = 0; number < 9; number += 1) enter(`stream ${number}`, 'live');
  await turns(2);
  expect(gate.load()).toEqual({ underWay: 0, waiting: 0, held: 0 });
});

test('who waits too long because nothing ends is refused', async () => {
  const { enter, seen } = openGate({ room: LARGE, maxWaitMs: 500 });
  for (const name of ['a', 'b', 'c']) enter(name);
  await turns(3);
  for (const name of ['d', 'e', 'f']) enter(name);
  await eventually(
    () => seen,
    (all) => all.length === 6,
  );
  expect(seen.slice(4).toSorted()).toEqual(['e is refused: late', 'f is refused: late']);
});

test('who hung up takes no place', async () => {
  const { gate, enter, seen } = openGate();
  enter('a', 'api', true);
  await turns(2);
  expect(seen).toEqual(['a is refused: gone']);
  expect(gate.load().underWay).toBe(0);
});

test('as many refusals are kept back as there is room for, the others are not', async () => {
  const { gate, enter, seen, state } = openGate({ holdMs: 30, held: 2 });
  state.lagMs = 1000;
  for (const name of ['a', 'b', 'c']) enter(name);
  expect(seen).toEqual(['c is refused: lag']);
  expect(gate.load().held).toBe(2);
  await eventually(
    () => seen,
    (all) => all.length === 3,
  );
  expect(gate.load().held).toBe(0);
});
