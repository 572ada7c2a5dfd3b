import { expect, test } from 'vitest';
import { buildBlock } from '../../../../test/support/build-block.ts';
import { type Oddity, REAL_USDT, realBlock } from '../../../../test/support/real-blocks.ts';
import { AppError } from '../../domain/errors.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import type { Sql } from '../../store/db/database.ts';
import { createJsonReader } from '../nodes/json-reader.ts';
import type { AskOptions, Node, Question } from '../nodes/node.ts';
import { createKnownTerms } from './fee-terms.ts';
import { digestWord, type ReadDeps, readBlock } from './read-block.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are bent in every way.
type Json = any;

/** What a node does otherwise than an honest one that speaks JSON. */
type Manner = {
  operator?: string;
  /** It speaks gRPC only; or as well, where it is asked for the very bytes. */
  grpc?: 'only' | 'twin';
  block?(json: Json): unknown;
  infos?(json: Json): unknown;
  isSilent?: boolean;
};

/** A node that shows one real block. */
function nodeOf(origin: string, oddity: Oddity, { operator = origin, grpc, ...manner }: Manner = {}): Node {
  const { json, infosJson, bytes, infoBytes } = realBlock(oddity);
  const ask = async <Answer>({ http, grpc: language }: Question<Answer>, options: AskOptions = {}): Promise<Answer> => {
    await null;
    if (manner.isSilent === true) throw new AppError('NODE_REFUSED', `${origin} is silent`, { retryable: true });
    const isBlock = http.path === '/wallet/getblock';
    if (language !== null && (grpc === 'only' || (grpc === 'twin' && options.wantsBytes === true))) {
      const sink = language.newSink();
      sink.push(isBlock ? bytes : infoBytes);
      return sink.end();
    }
    const reader = createJsonReader(http.shape ?? {}, 1024 * 1024);
    const bend = (isBlock ? manner.block : manner.infos) ?? ((shown: Json) => shown);
    reader.push(Buffer.from(JSON.stringify(bend(JSON.parse(isBlock ? json : infosJson)))));
    return http.read(reader.end());
  };
  const can = { hasBytes: grpc !== undefined, isOpenFor: () => false, setAside: () => undefined };
  return { url: origin, origin, operator, ...can, requestsLeft: () => null, ask };
}

/** What becomes of a real block that the first of these nodes shows first. */
async function settle(oddity: Oddity, nodes: readonly Node[], agreement = 2, passed: string | null = null) {
  const row = { number: 0, blockId: '', digest: passed, passedAt: 0, passedBy: 'anna', reason: 'seen', isSound: true };
  const reports: [string, string][] = [];
  const deps: ReadDeps = {
    db: { run: async () => (passed === null ? [] : [row]) } as unknown as Sql,
    network: 'nile',
    usdt: REAL_USDT,
    slotMs: 3000,
    agreement,
    pool: {
      available: async () => [...nodes],
      report: ({ origin }, problem) => reports.push([origin, problem]),
    },
    fees: createKnownTerms(),
    metrics: createMetrics(),
  };
  const [first] = nodes;
  if (first === undefined) throw new Error('no node');
  try {
    const read = await readBlock(deps, first, realBlock(oddity).number);
    return { read, code: null, message: '', reports };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { read: null, code: error.code, message: error.message, reports };
  }
}

/** What a stranger makes who has no producer's key: it proves itself, and is another block. */
const selfMade: Manner['block'] = () =>
  JSON.parse(JSON.stringify(buildBlock([], realBlock('outer-field').number).block));

/** A transaction whose result JSON shows as another than it was. */
const asFailed = (json: Json) => {
  json.transactions[0].ret[0].contractRet = 'REVERT';
  return json;
};
const failedInfos = ([{ log: _, ...info }]: Json) => [
  { ...info, result: 'FAILED', receipt: { ...info.receipt, result: 'REVERT' } },
];
/** Shows another transfer in the logs, as nothing contradicts in a block that is not proven. */
const withMore = (infos: Json) => {
  infos[0].log[0].data = 'f'.padStart(64, '0');
  return infos;
};

const POISONED: Oddity[] = ['outer-field', 'result-1002', 'order-id', 'header-raw'];

test.each(POISONED)(
  '%s: the node’s own gRPC twin decides, and the node is not blamed for what JSON hides',
  async (oddity) => {
    const { read, reports } = await settle(oddity, [nodeOf('a', oddity, { grpc: 'twin' })], 1);
    expect(read).toMatchObject({ node: { origin: 'a' }, block: { isProven: true }, word: null });
    expect(read?.logs.transfers).toMatchObject([{ isProven: true }]);
    expect(reports).toEqual([]);
  },
);

test.each(POISONED)('%s: another node that speaks gRPC decides, whatever others say', async (oddity) => {
  const nodes = [nodeOf('a', oddity), nodeOf('b', oddity, { block: asFailed }), nodeOf('c', oddity, { grpc: 'only' })];
  const { read, reports } = await settle(oddity, nodes);
  expect(read).toMatchObject({ node: { origin: 'c' }, block: { isProven: true }, word: null });
  expect(reports).toEqual([]);
});

test('a node whose JSON says otherwise than the bytes of another is reported', async () => {
  const lies: NonNullable<Manner['block']>[] = [asFailed, ({ transactions: _, ...block }) => block];
  for (const block of lies) {
    const nodes = [nodeOf('liar', 'outer-field', { block }), nodeOf('b', 'outer-field', { grpc: 'only' })];
    const { read, reports } = await settle('outer-field', nodes);
    expect(read).toMatchObject({ node: { origin: 'b' }, block: { isProven: true }, word: null });
    expect(reports).toEqual([['liar', 'unverifiable']]);
  }
});

test('JSON of which the bytes can be made decides as well', async () => {
  const nodes = [nodeOf('liar', 'payout', { block: asFailed }), nodeOf('b', 'payout')];
  const { read, reports } = await settle('payout', nodes);
  expect(read).toMatchObject({ node: { origin: 'b' }, block: { isProven: true }, word: null });
  expect(reports).toEqual([['liar', 'unverifiable']]);
});

test.each(POISONED)('%s: two operators that show the same are believed, and named', async (oddity) => {
  const { read, reports } = await settle(oddity, [nodeOf('a', oddity), nodeOf('b', oddity)]);
  expect(read).toMatchObject({
    node: { origin: 'a' },
    block: { isProven: false },
    word: { nodes: ['a', 'b'], operatorCount: 2 },
  });
  expect(read?.logs.transfers).toMatchObject([{ isProven: false }]);
  expect(reports).toEqual([]);
});

test('two of three that show the same are believed, whoever was asked first', async () => {
  const lies: Manner[] = [{ block: asFailed, infos: failedInfos }, { infos: withMore }];
  for (const lie of lies) {
    const nodes = [nodeOf('liar', 'outer-field', lie), nodeOf('b', 'outer-field'), nodeOf('c', 'outer-field')];
    const { read } = await settle('outer-field', nodes);
    expect(read).toMatchObject({ node: { origin: 'b' }, word: { nodes: ['b', 'c'], operatorCount: 2 } });
  }
});

test('a block that somebody made up, and that proves itself, does not stand against what two operators show', async () => {
  const [a, b, c] = [
    nodeOf('a', 'outer-field'),
    nodeOf('b', 'outer-field', { block: selfMade, infos: () => [] }),
    nodeOf('c', 'outer-field'),
  ];
  const { read } = await settle('outer-field', [a, b, c]);
  expect(read).toMatchObject({ node: { origin: 'a' }, word: { nodes: ['a', 'c'], operatorCount: 2 } });
  const exact = nodeOf('d', 'outer-field', { grpc: 'only' });
  expect((await settle('outer-field', [a, b, exact])).read).toMatchObject({
    node: { origin: 'd' },
    block: { isProven: true },
  });
});

test('a node that shows what is no block of the others holds nobody up: one that proves itself is taken, and judged by its signature', async () => {
  const nodes = [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field', { block: selfMade, infos: () => [] })];
  const { read } = await settle('outer-field', nodes);
  expect(read).toMatchObject({ node: { origin: 'b' }, block: { isProven: true }, word: null });
});

test('where one operator is enough otherwise, two are needed here', async () => {
  const { read } = await settle('outer-field', [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field')], 1);
  expect(read?.word).toEqual({ nodes: ['a', 'b'], operatorCount: 2 });
  const same = [nodeOf('a', 'outer-field', { operator: 'x' }), nodeOf('b', 'outer-field', { operator: 'x' })];
  expect(await settle('outer-field', same, 1)).toMatchObject({ code: 'BLOCK_UNVERIFIABLE' });
});

test('a block passes as an operator saw it, and in no other words', async () => {
  const alone = nodeOf('a', 'outer-field');
  const { read } = await settle('outer-field', [alone, nodeOf('b', 'outer-field')]);
  if (read === null) throw new Error('two operators agree');
  const seen = digestWord(read.block, read.logs);
  const passed = await settle('outer-field', [alone], 1, seen);
  expect(passed.read?.word).toEqual({ nodes: ['a'], operatorCount: 1 });
  const otherwise = nodeOf('a', 'outer-field', { infos: withMore });
  expect(await settle('outer-field', [otherwise], 1, seen)).toMatchObject({ read: null, code: 'BLOCK_UNVERIFIABLE' });
});

test('where three must agree, two are not enough', async () => {
  const [a, b, c] = [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field'), nodeOf('c', 'outer-field')];
  expect(await settle('outer-field', [a, b], 3)).toMatchObject({ code: 'BLOCK_UNVERIFIABLE' });
  expect((await settle('outer-field', [a, b, c], 3)).read?.word?.operatorCount).toBe(3);
});

test.each<[string, Manner]>([
  ['in what failed', { block: asFailed, infos: failedInfos }],
  ['in the logs', { infos: withMore }],
])('two operators that differ %s decide nothing, and neither is blamed', async (_what, manner) => {
  const nodes = [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field', manner)];
  const { code, message, reports } = await settle('outer-field', nodes);
  expect(code).toBe('BLOCK_UNVERIFIABLE');
  expect(message).toMatch(/\(a \([0-9a-f]{8}\), b \([0-9a-f]{8}\)\)/);
  expect(reports).toEqual([]);
});

test('one operator alone is not believed: it is held, and the way out is told', async () => {
  const { code, message, reports } = await settle('outer-field', [nodeOf('a', 'outer-field')], 1);
  expect(code).toBe('BLOCK_UNVERIFIABLE');
  const { number } = realBlock('outer-field');
  expect(reports).toEqual([]);
  expect(message).toContain(`block ${number} (`);
});

test('while another operator does not answer, it may show more in a moment: nobody is blamed', async () => {
  const nodes = [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field', { isSilent: true })];
  expect(await settle('outer-field', nodes)).toMatchObject({ code: 'NODES_DISAGREE', reports: [] });
  const behind = [nodeOf('a', 'outer-field'), nodeOf('b', 'outer-field', { block: () => ({}) })];
  expect(await settle('outer-field', behind)).toMatchObject({ code: 'NODES_DISAGREE', reports: [] });
});
