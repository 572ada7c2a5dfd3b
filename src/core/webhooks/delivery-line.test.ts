import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createDeliveryBuffer } from './delivery-line.ts';

type Item = { endpointId: string; target: string; isFailing: boolean; number: number };
const items = (target: string, count: number, isFailing = false): Item[] =>
  Array.from({ length: count }, (_, number) => ({ endpointId: target.split(' ')[0] ?? '', target, isFailing, number }));
const buffer = (concurrency = 128, perEndpoint = 8) =>
  createDeliveryBuffer<Item>({ concurrency, perEndpoint, maxWaitMs: 2000 });
const takeAll = (of: ReturnType<typeof buffer>) => {
  const taken: Item[] = [];
  for (let next = of.next(); next !== undefined; next = of.next()) taken.push(next);
  return taken;
};
const idsOf = (taken: Item[]) => taken.map(({ endpointId }) => endpointId).join('');

test('endpoints take turns, each in the order of its lease, and none has more than its places', () => {
  const of = buffer(128, 3);
  of.add([...items('a', 5), ...items('b', 2), ...items('c', 1)], 0);
  const taken = takeAll(of);
  expect(idsOf(taken)).toBe('abcaba');
  expect(taken.filter(({ endpointId }) => endpointId === 'a').map(({ number }) => number)).toEqual([0, 1, 2]);
  of.end('a', false);
  expect(of.next()).toMatchObject({ endpointId: 'a', number: 3 });
});

test('slow endpoints leave places to others: none has more than are free', () => {
  const of = buffer(16, 8);
  of.add(items('a', 20), 0);
  expect(takeAll(of)).toHaveLength(8);
  of.add(items('b', 20), 0);
  expect(takeAll(of)).toHaveLength(4);
  of.add(items('c', 20), 0);
  expect(takeAll(of)).toHaveLength(2);
  of.add(items('d', 20), 0);
  expect(idsOf(takeAll(of))).toBe('d');
  of.add(items('e', 20), 0);
  expect(idsOf(takeAll(of))).toBe('e');
  of.add(items('f', 20), 0);
  expect(takeAll(of)).toEqual([]);
});

test('an endpoint whose attempts fail has one place, and what waits for it is given back', () => {
  const of = buffer();
  of.add(items('a', 20), 0);
  takeAll(of);
  expect(of.end('a', true)).toHaveLength(12);
  expect(of.next()).toBeUndefined();
  expect(of.room().get('a')).toBe(0);
  for (let ended = 0; ended < 7; ended++) expect(of.end('a', true)).toEqual([]);
  expect(of.room().get('a')).toBe(1);
  of.add(items('a', 1, true), 2);
  expect(of.takeStale(3)).toEqual([]);
  expect(takeAll(of)).toHaveLength(1);
  of.end('a', false);
  expect(of.room().get('a')).toBeGreaterThan(1);
});

test('endpoints that fail have half of the places together, and in them come first', () => {
  const of = buffer(8, 2);
  for (let number = 0; number < 20; number++) of.add(items(`failing-${number}`, 1, true), 0);
  of.add(items('healthy', 2), 0);
  const taken = takeAll(of);
  expect(taken.map(({ endpointId }) => endpointId)).toEqual(
    [0, 1, 2, 3].map((n) => `failing-${n}`).concat('healthy', 'healthy'),
  );
  of.end('failing-0', null);
  expect(takeAll(of)).toMatchObject([{ endpointId: 'failing-4' }]);
  // One that succeeds counts as healthy; one that fails no longer does.
  of.end('failing-1', false);
  of.end('healthy', true);
  expect(takeAll(of)).toEqual([]);
  of.end('healthy', true);
  expect(takeAll(of)).toMatchObject([{ endpointId: 'failing-5' }]);
});

test('of an adapter no URL holds up another: what has no place is given back at once, and all of them leave places to others', () => {
  const of = buffer(16, 4);
  expect(of.add(items('x slow', 40), 0)).toHaveLength(32);
  expect(of.add(items('x failing', 5, true), 0)).toHaveLength(4);
  expect(of.add(items('x fast', 3), 0)).toEqual([]);
  expect(of.room().get('x')).toBe(128 - 8 - 1 - 3);
  const taken = takeAll(of);
  // It takes half of the places; the other half is left.
  expect(taken).toHaveLength(8);
  expect(taken.filter(({ target }) => target === 'x fast')).toHaveLength(3);
  of.add(items('a', 9), 0);
  expect(takeAll(of)).toHaveLength(4);
});

test('what has waited for two seconds is given back', () => {
  const of = buffer();
  of.add(items('a', 10), 0);
  takeAll(of);
  of.add(items('a', 3), 1000);
  expect(of.takeStale(2000)).toEqual([]);
  expect(of.takeStale(2001).map(({ number }) => number)).toEqual([8, 9]);
  expect(of.held()).toBe(11);
});

test('an endpoint that runs dry may have twice as much the next time, one whose deliveries grow old half as much', () => {
  const of = buffer();
  const roomOf = () => of.room().get('a') ?? 0;
  of.add(items('a', 1), 0);
  takeAll(of);
  const rooms = Array.from({ length: 8 }, roomOf);
  expect(rooms).toEqual([23, 39, 71, 135, 263, 519, 1031, 1031]);
  of.add(items('a', 20), 0);
  takeAll(of);
  of.takeStale(5000);
  expect(of.room().get('a')).toBeLessThanOrEqual(1024);
});

test('whatever happens, the bounds hold and nothing is lost or comes twice', () => {
  const targets = ['a', 'b', 'c', 'd', 'x 1', 'x 2', 'x 3'];
  const endpoint = fc.constantFrom(...targets);
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), endpoint, count: fc.nat(12), isFailing: fc.boolean() }),
    fc.record({ kind: fc.constant('take' as const) }),
    fc.record({ kind: fc.constant('end' as const), isFailure: fc.option(fc.boolean()) }),
    fc.record({ kind: fc.constant('stale' as const), afterMs: fc.nat(3000) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const of = buffer(10, 4);
      let nowMs = 0;
      let added = 0;
      let out = 0;
      const underWay: Item[] = [];
      for (const one of steps) {
        if (one.kind === 'add') {
          added += one.count;
          out += of.add(items(one.endpoint, one.count, one.isFailing), nowMs).length;
        }
        if (one.kind === 'take') underWay.push(...takeAll(of));
        if (one.kind === 'end') {
          const ended = underWay.shift();
          if (ended === undefined) continue;
          out += 1 + of.end(ended.target, one.isFailure).length;
        }
        if (one.kind === 'stale') {
          nowMs += one.afterMs;
          out += of.takeStale(nowMs).length;
        }
        expect(of.underWay()).toBe(underWay.length);
        expect(of.underWay()).toBeLessThanOrEqual(10);
        for (const id of targets) {
          expect(underWay.filter(({ target }) => target === id).length).toBeLessThanOrEqual(4);
        }
        expect(of.room().get('x') ?? 128).toBeLessThanOrEqual(128);
        expect(of.held() + out).toBe(added);
      }
      // Everything that waits gets its turn when attempts end.
      underWay.push(...takeAll(of));
      while (underWay.length > 0) {
        const ended = underWay.shift();
        out += 1 + of.end(ended?.target ?? '', false).length;
        underWay.push(...takeAll(of));
      }
      expect(of.held()).toBe(0);
      expect(out).toBe(added);
    }),
  );
});
