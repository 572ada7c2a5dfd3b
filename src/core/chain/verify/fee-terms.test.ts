import type { AccountHex } from '@quittance/tron/address';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '../../domain/errors.ts';
import type { Node } from '../nodes/node.ts';
import { createKnownTerms, type FeeTerms, feeOf } from './fee-terms.ts';

const USDT = 'd5'.repeat(20) as AccountHex;
const OWNER = '44'.repeat(20) as AccountHex;
const SUCCESSOR = '66'.repeat(20);
const TERMS: FeeTerms = { owner: OWNER, basisPoints: 10n, maxFee: 5_000_000n };

type TermsAnswer =
  | { owner?: string; basisPoints?: bigint; maxFee?: bigint; successor?: string }
  | 'silent'
  | 'no contract'
  | 'reverts';

/** A node that names these terms. */
function nodeOf(operator: string, answers: TermsAnswer): Node & { asked: string[] } {
  const asked: string[] = [];
  const ask: Node['ask'] = async ({ http }) => {
    const { function_selector: method, contract_address: contract } = http.body as Record<string, string>;
    expect(contract).toBe(`41${USDT}`);
    asked.push(`${http.path} ${method}`);
    if (answers === 'silent') throw new AppError('NODE_REFUSED', 'silent', { retryable: true });
    if (answers === 'no contract') return http.read({ result: { code: 'CONTRACT_VALIDATE_ERROR', message: '6e6f' } });
    if (answers === 'reverts') return http.read({ result: { result: true }, constant_result: [''] });
    const { owner = OWNER, basisPoints = TERMS.basisPoints, maxFee = TERMS.maxFee, successor } = answers;
    const words = {
      'owner()': owner,
      'basisPointsRate()': basisPoints.toString(16),
      'maximumFee()': maxFee.toString(16),
      'deprecated()': successor === undefined ? '' : '1',
      'upgradedAddress()': successor ?? '',
    };
    const word = words[method as keyof typeof words].padStart(64, '0');
    return http.read({ result: { result: true }, constant_result: [word] });
  };
  return {
    url: operator,
    origin: operator,
    operator,
    hasBytes: false,
    isOpenFor: () => false,
    setAside: () => undefined,
    requestsLeft: () => null,
    ask,
    asked,
  };
}

/** What is known after such nodes were asked once. */
async function learn(nodes: readonly Node[], agreement = 1) {
  const terms = createKnownTerms(() => 0);
  const isNew = await terms.refresh({ pool: { available: async () => [...nodes] }, agreement, usdt: USDT });
  return { isNew, known: terms.known() };
}

test.each<[string, [string, TermsAnswer][], string | null]>([
  [
    'of two operators that name the same',
    [
      ['a', { successor: SUCCESSOR }],
      ['b', { successor: SUCCESSOR }],
    ],
    SUCCESSOR,
  ],
  [
    'that only one of two names',
    [
      ['a', { successor: SUCCESSOR }],
      ['b', {}],
    ],
    null,
  ],
  [
    'of which two name another',
    [
      ['a', { successor: SUCCESSOR }],
      ['b', { successor: OWNER }],
    ],
    null,
  ],
  ['of the only operator', [['a', { successor: SUCCESSOR }]], null],
  [
    'that nobody names',
    [
      ['a', {}],
      ['b', {}],
    ],
    null,
  ],
])('the contract that replaced it, %s, is %s', async (_what, answers, expected) => {
  const terms = createKnownTerms(() => 0);
  const nodes = answers.map(([operator, each]) => nodeOf(operator, each));
  const deps = { pool: { available: async () => nodes }, agreement: 1, usdt: USDT };
  await terms.refresh(deps);
  // Until a call was seen to be forwarded it may be any other token.
  expect(terms.successorAt(70)).toBe(null);
  expect(await terms.isForwarding(deps, 70)).toBe(expected !== null);
  expect([69, 70, 71].map(terms.successorAt)).toEqual([null, expected, expected]);
  const said = answers.flatMap(([, each]) => (typeof each === 'object' ? (each.successor ?? []) : []));
  expect(terms.namedSuccessors()).toEqual([...new Set(said)]);
});

test('blocks after a replacement wait until operators name the successor, however late that is', async () => {
  let nowMs = 0;
  const terms = createKnownTerms(() => nowMs);
  let nodes = [nodeOf('a', { successor: SUCCESSOR }), nodeOf('b', 'silent')];
  const deps = { pool: { available: async () => nodes }, agreement: 2, usdt: USDT };
  expect(await terms.unansweredFrom(deps)).toBe(Number.POSITIVE_INFINITY);
  terms.noteReplaced(70);
  // Also when the block of the event was recorded long ago.
  for (nowMs of [0, 60_000, 120_000]) expect(await terms.unansweredFrom(deps)).toBe(70);
  nodes = [nodeOf('a', { successor: SUCCESSOR }), nodeOf('b', { successor: SUCCESSOR })];
  expect(await terms.unansweredFrom(deps)).toBe(70);
  nowMs = 180_000;
  expect(await terms.unansweredFrom(deps)).toBe(Number.POSITIVE_INFINITY);
  expect([69, 70].map(terms.successorAt)).toEqual([null, SUCCESSOR]);
});

test.each([
  ['both operators name none, because they show a state before the event', null, [{}, {}]],
  ['the event names it, and both operators name none', SUCCESSOR, [{}, {}]],
  ['the event names it, and no operator answers', SUCCESSOR, ['silent', 'silent']],
  ['a later event names another', OWNER, [{}, {}]],
] as const)('after a replacement, while %s, the successor is %s', async (_when, named, answers) => {
  const terms = createKnownTerms(() => 0);
  const nodes = answers.map((each, index) => nodeOf(`operator ${index}`, each));
  const deps = { pool: { available: async () => nodes }, agreement: 2, usdt: USDT };
  if (named === OWNER) terms.noteReplaced(70, SUCCESSOR as AccountHex);
  terms.noteReplaced(named === OWNER ? 71 : 70, named as AccountHex | null);
  expect(terms.answers()).toBe('no node is available');
  expect(await terms.unansweredFrom(deps)).toBe(named === null ? 70 : Number.POSITIVE_INFINITY);
  await terms.refresh(deps);
  const said = answers.map(
    (each, index) => `operator ${index} ${each === 'silent' ? 'does not answer' : 'names none'}`,
  );
  expect(terms.answers()).toBe(said.join('; '));
  expect([69, 70, 71].map(terms.successorAt)).toEqual([null, named, named]);
});

test('terms that two operators name are known, as of the newest block', async () => {
  const nodes = [nodeOf('a', {}), nodeOf('b', {})];
  expect(await learn(nodes)).toEqual({ isNew: true, known: [TERMS] });
  const path = '/wallet/triggerconstantcontract';
  const methods = ['owner()', 'basisPointsRate()', 'maximumFee()', 'deprecated()', 'upgradedAddress()'];
  expect(nodes[0]?.asked).toEqual(methods.map((method) => `${path} ${method}`));
});

test.each<[string, [string, TermsAnswer][], number?]>([
  ['one operator', [['a', {}]]],
  [
    'two nodes of one operator',
    [
      ['a', {}],
      ['a', {}],
    ],
  ],
  [
    'two operators where three must agree',
    [
      ['a', {}],
      ['b', {}],
    ],
    3,
  ],
  [
    'one of two, while the other is silent',
    [
      ['a', {}],
      ['b', 'silent'],
    ],
  ],
  [
    'one of two, while the other knows no such contract',
    [
      ['a', {}],
      ['b', 'no contract'],
    ],
  ],
  [
    'one of two, while the other says that it reverts',
    [
      ['a', {}],
      ['b', 'reverts'],
    ],
  ],
  [
    'two of three, of whom the third names another owner',
    [
      ['a', {}],
      ['b', {}],
      ['c', { owner: '55'.repeat(20) }],
    ],
  ],
  [
    'two of three, of whom the third names another rate',
    [
      ['a', {}],
      ['b', {}],
      ['c', { basisPoints: 0n }],
    ],
  ],
  [
    'two of three, of whom the third names another cap',
    [
      ['a', {}],
      ['b', {}],
      ['c', { maxFee: 1n }],
    ],
  ],
  ['nobody', []],
])('terms that only %s name are not believed', async (_what, answers, agreement = 1) => {
  const nodes = answers.map(([operator, each]) => nodeOf(operator, each));
  expect(await learn(nodes, agreement)).toEqual({ isNew: false, known: [] });
});

test.each<[string, TermsAnswer]>([
  ['a rate of 20 basis points', { basisPoints: 20n }],
  ['a cap of 50 USDT', { maxFee: 50_000_000n }],
])('%s, which the contract allows nobody to set, is not believed', async (_what, answers) => {
  expect((await learn([nodeOf('a', answers), nodeOf('b', answers)])).known).toEqual([]);
});

test('a third operator that says nothing keeps nobody from the terms of two', async () => {
  expect((await learn([nodeOf('a', {}), nodeOf('b', {}), nodeOf('c', 'silent')])).known).toEqual([TERMS]);
});

test('nodes are asked once a minute at most; what was known stays, the oldest of more than sixteen goes', async () => {
  let nowMs = 0;
  let basisPoints = 0n;
  let maxFee = 0n;
  const terms = createKnownTerms(() => nowMs);
  const asked: unknown[] = [];
  const pool = {
    available: async () => {
      asked.push(nowMs);
      return [nodeOf('a', { basisPoints, maxFee }), nodeOf('b', { basisPoints, maxFee })];
    },
  };
  const refresh = () => terms.refresh({ pool, agreement: 2, usdt: USDT });
  expect(await refresh()).toBe(true);
  basisPoints = 10n;
  nowMs = 59_999;
  expect(await refresh()).toBe(false);
  nowMs = 60_000;
  expect(await refresh()).toBe(true);
  expect(asked).toEqual([0, 60_000]);
  expect(terms.known().map((each) => each.basisPoints)).toEqual([0n, 10n]);
  nowMs += 60_000;
  expect(await refresh()).toBe(false);
  for (maxFee = 1n; maxFee <= 16n; maxFee += 1n) {
    nowMs += 60_000;
    expect(await refresh()).toBe(true);
  }
  expect(terms.known().map((each) => each.maxFee)).toEqual(Array.from({ length: 16 }, (_, index) => BigInt(index + 1)));
});

test('blocks that are read at the same time wait for one look at the contract', async () => {
  const terms = createKnownTerms(() => 0);
  const nodes = ['a', 'b'].map((operator) => nodeOf(operator, { successor: SUCCESSOR }));
  const deps = { pool: { available: async () => nodes }, agreement: 2, usdt: USDT };
  expect(await Promise.all([8, 7, 9].map((number) => terms.isForwarding(deps, number)))).toEqual([true, true, true]);
  expect(nodes.map(({ asked }) => asked.length)).toEqual([5, 5]);
  expect([6, 7].map(terms.successorAt)).toEqual([null, SUCCESSOR]);
});

test('a fee is what Tether’s contract takes: a share of the value, rounded down, at most the cap', () => {
  const amount = fc.bigInt(0n, 2n ** 80n);
  fc.assert(
    fc.property(amount, fc.bigInt(0n, 19n), fc.bigInt(0n, 49_999_999n), (value, basisPoints, maxFee) => {
      const fee = feeOf({ owner: OWNER, basisPoints, maxFee }, value);
      const uncapped = (value * basisPoints) / 10_000n;
      expect(fee).toBe(uncapped < maxFee ? uncapped : maxFee);
      expect(fee).toBeLessThanOrEqual(value);
    }),
  );
  expect(feeOf(TERMS, 9_999n)).toBe(9n);
});
