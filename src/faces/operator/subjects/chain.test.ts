import { expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';
import type { ChainStatus } from '../../../core/store/chain/status.ts';
import { describeCatchUp, type Standing, whyBehind } from './chain.ts';

const NODE: ChainStatus['nodes'][number] = {
  ...{ url: 'http://node.example/secret', operator: 'example', state: 'healthy', reason: null, pausedForMs: 0 },
  ...{ requests: 9, refusals: 0, requestsToday: 9, answerMs: 3 },
};
const BEHIND: ChainStatus = {
  ...{ blind: null, headNumber: 130, ownSolidNumber: 112, nodeSolidNumber: 112, processedNumber: 100 },
  ...{ catchUp: null, openBlock: null, nodes: [NODE], requestsPerBlock: null },
};
const WELL: ChainStatus = { ...BEHIND, processedNumber: 112 };

const why = (status: ChainStatus | null, rest: Partial<Standing> = {}) =>
  whyBehind({ status, ageMs: 1000, isLed: true, halt: null, alarms: [], ...rest });

test('where all is well there is nothing to tell, though a node rests', () => {
  expect(why(WELL)).toEqual([]);
  expect(why({ ...WELL, nodes: [{ ...NODE, state: 'paused', pausedForMs: 900 }] })).toEqual([]);
});

test.each<[string, ChainStatus | null, Partial<Standing>, string, string]>([
  ['a halt', WELL, { halt: { at: unixMs(0), reason: 'two nodes contradict' } }, 'halted', 'two nodes contradict'],
  ['no watcher that runs', BEHIND, { isLed: false }, 'no-watcher', 'start a process with the watcher role'],
  ['no watcher that ever ran', null, { isLed: false, ageMs: null }, 'no-watcher', 'no watcher is running'],
  ['a watcher that wrote nothing yet', null, { ageMs: null }, 'watcher-silent', 'has not started following'],
  ['a watcher that hangs', WELL, { ageMs: 45_000 }, 'watcher-silent', 'has written no status for 45 s'],
  ['an alarm', WELL, { alarms: [{ kind: 'unverifiable-block', detail: 'block 113 …' }] }, 'alarm', 'block 113 …'],
  ['blindness without its alarm', { ...WELL, blind: 'nobody answers' }, {}, 'alarm', 'blind: nobody answers'],
  ['a block that is open', { ...BEHIND, openBlock: 101 }, {}, 'agreement', 'block 101 waits until enough operators'],
  [
    'headers that prove less',
    { ...BEHIND, ownSolidNumber: 100 },
    {},
    'not-built-upon',
    'only the blocks up to block 100',
  ],
  [
    'a node that is paused',
    { ...BEHIND, nodes: [NODE, { ...NODE, state: 'paused', pausedForMs: 12_000, reason: 'HTTP 429' }] },
    {},
    'nodes',
    'http://node.example is paused for 12 s: HTTP 429',
  ],
  [
    'a node that is asked by gRPC and paused',
    { ...BEHIND, nodes: [{ ...NODE, url: 'grpc://node.example:50051', state: 'paused', pausedForMs: 2000 }] },
    {},
    'nodes',
    'grpc://node.example:50051 is paused for 2 s',
  ],
  [
    'catching up',
    { ...BEHIND, catchUp: { blocksPerSecond: 61.26, secondsLeft: 7.2 } },
    {},
    'catching-up',
    'catching up: 61.3 blocks per second, about 8 s left',
  ],
])('%s is named', (_what, status, rest, code, text) => {
  expect(why(status, rest)).toEqual([{ code, text: expect.stringContaining(text) }]);
});

test('alarms that keep nothing from being recorded are no cause', () => {
  expect(why(WELL, { alarms: [{ kind: 'capacity-low', detail: 'add addresses' }] })).toEqual([]);
});

test('what a watcher that is gone wrote of itself is not told as if it were so now', () => {
  const alarms = [{ kind: 'blind', detail: 'nobody answers' }] as const;
  const status = { ...BEHIND, catchUp: { blocksPerSecond: 61.26, secondsLeft: 7.2 } };
  expect(why(status, { isLed: false, alarms }).map(({ code }) => code)).toEqual(['no-watcher']);
});

test.each([
  [null, null],
  [0, 0],
  [0, 12],
])('a rate of %s with %s s left is not known, and not told as a number', (blocksPerSecond, secondsLeft) => {
  expect(describeCatchUp({ blocksPerSecond, secondsLeft })).toBe('the speed is not known yet');
});

test('a rate at which Quittance never catches up shows no time', () => {
  expect(describeCatchUp({ blocksPerSecond: 0.24, secondsLeft: null })).toBe(
    '0.2 blocks per second, but the chain grows as fast',
  );
});
