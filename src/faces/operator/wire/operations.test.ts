import { expect, test } from 'vitest';
import { say } from '../../../core/domain/message.ts';
import { ACTIONS } from '../actions.ts';
import { LOCAL_ACTIONS, OPERATIONS } from './operations.ts';
import { readOutcome, writeOutcome } from './outcome-json.ts';

test('every use case can be run over the wire, or a list says why not', () => {
  const here = OPERATIONS.map(({ action }) => action as string);
  const told = Object.keys(LOCAL_ACTIONS);
  expect([...here, ...told].sort()).toEqual(Object.keys(ACTIONS).sort());
});

test('no two operations have the same route, and each names members of its input', () => {
  const routes = OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`);
  expect(new Set(routes).size).toBe(routes.length);
  for (const { path, input } of OPERATIONS) {
    const members = Object.keys((input as unknown as { properties: object }).properties);
    expect(members).toEqual(expect.arrayContaining([...path.matchAll(/:(\w+)/g)].map(([, name]) => name)));
  }
});

test('what reads does not change: GET is for what leaves no trace, and nothing else', () => {
  const changing = OPERATIONS.filter(({ action }) => 'records' in ACTIONS[action]);
  expect(changing.filter(({ method }) => method === 'GET')).toEqual([]);
  const reading = OPERATIONS.filter((each) => !changing.includes(each));
  expect(reading.filter(({ method }) => method !== 'GET')).toEqual([]);
});

test('an outcome comes back as it was, with texts whose names are data', () => {
  const outcome = {
    at: 1,
    none: null,
    big: 2n ** 64n,
    text: say`give ${{ field: 'xpub' }}: ${{ command: 'key list' }}`,
  };
  expect(readOutcome(writeOutcome(outcome))).toEqual(outcome);
});
