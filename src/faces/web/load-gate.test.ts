import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { eventually } from '../../../test/support/service.ts';
import { someCases } from '../../../test/support/some-cases.ts';
import { createLoadGate, type GateLimits, LIMITS, type Places, type QueueName } from './load-gate.ts';

const PLACES: Places = { underWay: { api: 4, page: 6, stranger: 4 }, strangers: 3, perTurn: 2 };
const SMALL: Omit<GateLimits, 'most'> = {
  lagMs: { api: 100, page: 200, live: 200, stranger: 50 },
  few: 0,
  least: { underWay: { api: 1, page: 2, stranger: 1 }, strangers: 1, perTurn: 1 },
  room: { api: 3, page: 20, live: 20, stranger: 3 },
  maxWaitMs: 60_000,
  holdMs: 0,
  held: 100,
  heldPerSecond: 1000,
};

const LARGE = { api: 20, page: 20, live: 20, stranger: 20 };

/** A gate whose lag and share the test controls. It records the fate of each request, in order. */
function openGate({ underWay, perTurn, strangers, ...limits }: Partial<GateLimits & Places> = {}) {
  const seen: string[] = [];
  const state = { lagMs: 0, share: 1 };
  const most = {
    underWay: underWay ?? PLACES.underWay,
    perTurn: perTurn ?? PLACES.perTurn,
    strangers: strangers ?? PLACES.strangers,
  };
  const gate = createLoadGate(
    { lagMs: () => state.lagMs, requestShare: () => state.share },
    { ...SMALL, most, ...limits },
  );
  const enter = (name: string, line: QueueName = 'api', isGone = false, client = 'a client') =>
    gate.enter(line, {
      client,
      begin: () => seen.push(`${name} begins`),
      refuse: (why) => seen.push(`${name} is refused: ${why}`),
      isGone: () => isGone,
    });
  const enterOf = (client: string, line: QueueName, name: string) => enter(name, line, false, client);
  return { gate, enter, enterOf, seen, state };
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

test('while other work comes late one is under way and one begins in a turn, and all places are there again when it is in time', async () => {
  const { gate, enter, seen, state } = openGate({ room: LARGE });
  state.share = 0;
  for (const name of ['a', 'b', 'c', 'd']) enter(name);
  await turns(3);
  expect(seen).toEqual(['a begins']);
  // Halfway between one and four.
  state.share = 0.5;
  gate.end('api');
  await turns(4);
  expect(seen).toEqual(['a begins', 'b begins', 'c begins']);
  state.share = 1;
  gate.end('api');
  await turns(1);
  expect(seen.at(-1)).toBe('d begins');
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

test('however many strangers are in the house, a lag refuses no caller and no page while those are few', async () => {
  const { enter, seen, state } = openGate({ room: LARGE, perTurn: 10, few: 3 });
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name, 'stranger');
  state.lagMs = 1000;
  enter('an order');
  enter('a page', 'page');
  enter('f', 'stranger');
  await eventually(
    () => seen,
    (all) => all.length >= 3 && all.includes('f is refused: lag'),
  );
  // A timer sends the refusal. On a busy machine it may come before the turn in which the others begin.
  expect(seen.filter((one) => !one.startsWith('f ')).slice(0, 2)).toEqual(['a page begins', 'an order begins']);
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

test.each<QueueName>(['api', 'page', 'live', 'stranger'])(
  'the clients of a line take turns, so one who asks once is not behind all that another asked before: %s',
  async (line) => {
    const { enterOf, seen } = openGate({ room: LARGE, perTurn: 3 });
    for (const name of ['a', 'b', 'c']) enterOf('one', line, name);
    enterOf('another', line, 'd');
    await nextTurn();
    expect(seen).toEqual(['a begins', 'd begins', 'b begins']);
  },
);

test.each<QueueName>(['api', 'page', 'live', 'stranger'])(
  'in a full line who has most there makes room for who has less, and only then: %s',
  async (line) => {
    const room = { api: 4, page: 4, live: 4, stranger: 4 };
    const { enterOf, seen } = openGate({ room, strangers: 4, perTurn: 10 });
    for (const name of ['a', 'b', 'c', 'd', 'e']) enterOf('one', line, name);
    for (const name of ['f', 'g', 'h']) enterOf('another', line, name);
    await eventually(
      () => seen,
      (all) => all.length === 8,
    );
    const refused = ['a', 'b', 'e', 'h'].map((name) => `${name} is refused: full`);
    const begun = ['c', 'd', 'f', 'g'].map((name) => `${name} begins`);
    expect(seen.toSorted()).toEqual([...refused, ...begun].sort());
  },
);

test('callers whose key is known go before strangers, whichever network both come from', async () => {
  const { enterOf, seen } = openGate({ room: LARGE });
  for (const name of ['junk', 'more junk']) enterOf('a network', 'stranger', name);
  for (const name of ['an order', 'another order']) enterOf('a key', 'api', name);
  await nextTurn();
  expect(seen).toEqual(['an order begins', 'another order begins']);
});

test('strangers who are under way leave callers places, which callers need not leave them', async () => {
  const { gate, enter, seen } = openGate({ room: LARGE, perTurn: 10 });
  for (const name of ['a', 'b', 'c', 'd']) enter(name, 'stranger');
  await turns(2);
  expect(seen).not.toContain('d begins');
  for (const name of ['an order', 'another order']) enter(name);
  await turns(2);
  expect(seen.slice(3)).toEqual(['an order begins']);
  gate.end('stranger');
  await turns(2);
  expect(seen.slice(4)).toEqual(['another order begins']);
});

test('strangers who fill their line take no room of callers, and are refused at a lag at which callers are not', async () => {
  const { enterOf, seen, state } = openGate({ perTurn: 10 });
  for (const name of ['a', 'b', 'c', 'd']) enterOf('a network', 'stranger', name);
  for (const name of ['an order', 'another order']) enterOf('a key', 'api', name);
  state.lagMs = 75;
  enterOf('another network', 'stranger', 'e');
  enterOf('a key', 'api', 'a third order');
  await eventually(
    () => seen,
    (all) => all.length === 6,
  );
  expect(seen.filter((text) => text.includes('refused')).toSorted()).toEqual([
    'd is refused: full',
    'e is refused: lag',
  ]);
});

test('however many callers and pages come, every sixteenth that begins is a stranger', async () => {
  const room = { api: 40, page: 40, live: 40, stranger: 40 };
  const underWay = { api: 40, page: 40, stranger: 40 };
  const { enterOf, seen } = openGate({ room, underWay, strangers: 40, perTurn: 16 });
  for (let number = 0; number < 16; number += 1) {
    enterOf('a key', 'api', 'an order');
    enterOf('a network', 'page', 'a page');
  }
  enterOf('a network', 'stranger', 'a stranger');
  await nextTurn();
  expect(seen.filter((text) => text === 'an order begins')).toHaveLength(3);
  expect(seen.at(-1)).toBe('a stranger begins');
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

test.each(someCases([300, 1000, 10], 3))(
  '%s clients that ask again at once get no more refusals a second than the limit says',
  async (clients) => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const gate = createLoadGate({ lagMs: () => 1000, requestShare: () => 1 }, { ...LIMITS, few: 0 });
      let refused = 0;
      const ask = (client: string) =>
        gate.enter('page', {
          client,
          begin: () => expect.fail('there is no room'),
          refuse: (_why, isHeld) => {
            expect(isHeld).toBe(true);
            refused += 1;
            ask(client);
          },
          isGone: () => false,
        });
      for (let client = 0; client < clients; client += 1) ask(`${client}`);
      await vi.advanceTimersByTimeAsync(3000);
      expect(refused).toBeLessThanOrEqual(3 * LIMITS.heldPerSecond);
      // And no request waits much longer than the crowd requires.
      expect(refused).toBeGreaterThan(3 * Math.min(clients, LIMITS.heldPerSecond / 2));
    } finally {
      vi.useRealTimers();
    }
  },
);
