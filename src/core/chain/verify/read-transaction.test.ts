import { createHash } from 'node:crypto';
import { startDevnet } from '@quittance/devnet';
import { type AccountHex, accountToAddress, parseAddress } from '@quittance/tron/address';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { askNode, contractsOf, payerOf } from '../../../../test/support/devnet.ts';
import { payScenario } from '../../../developer/scenarios/pay-scenario.ts';
import { SCENARIO_NAMES, type Scenario } from '../../../developer/scenarios/scenarios.ts';
import { AppError } from '../../domain/errors.ts';
import { answerLookup } from '../../domain/lookup/lookup.ts';
import { microUsdt } from '../../domain/money.ts';
import { unixMs } from '../../domain/time.ts';
import { createJsonReader } from '../nodes/json-reader.ts';
import type { Node } from '../nodes/node.ts';
import { type Known, readFacts, readTransaction, transactionBy } from './transaction-reader.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers are bent in every way.
type Json = any;

const TO = '5'.repeat(40) as AccountHex;
const AMOUNT = 25_000_137n;
const QUESTION = { maxBytes: 524_288, isOptional: true };
const SHOWN: Scenario[] = ['exact', 'contract', 'fake-token', 'reverted', 'out-of-energy', 'zero-value'];

type Shown = { txId: string; info: Json; json: Json };
const shown = new Map<string, Shown>();
let usdt: AccountHex;
let newest: Pick<Known, 'now' | 'head'>;

/** What was examined when the chain of the test ended. */
const known = (): Known => ({ usdt, ...newest });
const copyOf = (name: string): Shown => structuredClone(shown.get(name) as Shown);
/** A shown transaction as its question reads it. */
const readOf = ({ txId, info, json }: Shown) => ({ info, transaction: transactionBy(txId).http.read(json) });
const facts = (each: Shown, others: Partial<Known> = {}) =>
  readFacts(each.txId, readOf(each), { ...known(), ...others });
/** A node that gives these answers, one after the other. */
function answering(
  answers: Json[],
  onCall: (path: string, call?: object) => void = () => undefined,
): Pick<Node, 'origin' | 'ask'> {
  return {
    origin: 'http://node',
    ask: async ({ http }, call) => {
      onCall(http.path, call);
      const reader = createJsonReader(http.shape ?? {}, 1024 * 1024);
      try {
        reader.push(Buffer.from(JSON.stringify(answers.shift() ?? null)));
        return http.read(reader.end());
      } catch (error) {
        throw new AppError('NODE_REFUSED', (error as Error).message, { retryable: true });
      }
    },
  };
}

beforeAll(async () => {
  expect(SCENARIO_NAMES).toEqual(expect.arrayContaining(SHOWN));
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  const parsed = parseAddress(devnet.usdtContract);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  usdt = parsed.account;
  devnet.mineUntilSolid();
  const payer = payerOf(devnet);
  const invoice = { address: accountToAddress(TO), amountMicro: AMOUNT };
  const ids: [string, string][] = [];
  for (const scenario of SHOWN) {
    const { txIds } = await payScenario(payer, { scenario, contracts: contractsOf(devnet), invoice });
    ids.push([scenario, txIds[0] ?? '']);
  }
  ids.push(['trx', await payer.sendTrx({ to: invoice.address, amountSun: 7_000_000n })]);
  devnet.mine();
  for (const [name, txId] of ids) {
    const info = await askNode<Json>(devnet.url, '/wallet/gettransactioninfobyid', { value: txId });
    const json = await askNode<Json>(devnet.url, '/wallet/gettransactionbyid', { value: txId });
    shown.set(name, { txId, info, json });
  }
  const { number, timestampMs } = devnet.head();
  newest = { now: unixMs(timestampMs), head: { number, time: unixMs(timestampMs) } };
  await devnet.stop();
});

const nothing = { usdt: [], otherTokens: [], trx: null, isTrc10: false, isUsdtCall: false };
const paid = { ...nothing, usdt: [{ to: TO, amountMicro: AMOUNT }] };

describe('what a node shows of a transaction', () => {
  test.each([
    ['exact', { kind: 'done', ...paid, isUsdtCall: true }],
    ['contract', { kind: 'done', ...paid }],
    ['fake-token', { kind: 'done', ...nothing, otherTokens: [{ contract: expect.any(String), to: TO }] }],
    ['zero-value', { kind: 'done', ...nothing, isUsdtCall: true }],
    ['trx', { kind: 'done', ...nothing, trx: { to: TO, amountSun: 7_000_000n } }],
    ['reverted', { kind: 'failed', result: 'REVERT', payer: { account: expect.any(String), isFrozen: false } }],
    ['out-of-energy', { kind: 'failed', result: 'OUT_OF_ENERGY', payer: null }],
  ])('%s', (name, expected) => {
    const { info } = copyOf(name);
    expect(facts(copyOf(name))).toEqual({ ...expected, blockNumber: info.blockNumber, blockTime: info.blockTimeStamp });
  });

  test('USDT is told from another token by the bytes of its contract', () => {
    const fake = copyOf('fake-token');
    const [log] = fake.info.log;
    const asUsdt = facts(fake, { usdt: log.address as AccountHex });
    expect(asUsdt).toMatchObject({ usdt: [{ to: TO, amountMicro: AMOUNT }], otherTokens: [] });
  });

  test('a call of a contract that leaves no Transfer is not said to move nothing: it may have moved TRX', () => {
    const call = copyOf('fake-token');
    const { isUsdtCall, usdt: transfers } = facts({ ...call, info: { ...call.info, log: [] } }) as Json;
    expect({ isUsdtCall, transfers }).toEqual({ isUsdtCall: false, transfers: [] });
  });

  test('a block above the newest examined one is believed, and where none was examined any height', () => {
    const paidLater = copyOf('exact');
    Object.assign(paidLater.info, {
      blockNumber: paidLater.info.blockNumber + 10_000_000,
      blockTimeStamp: newest.now + 3_600_000,
    });
    expect(facts(paidLater)).toMatchObject({ kind: 'done' });
    Object.assign(paidLater.info, { blockNumber: 2 ** 40 });
    expect(facts(paidLater, { head: null })).toMatchObject({ blockNumber: 2 ** 40 });
  });

  test('`{}` is a transaction that it does not know in a block', async () => {
    const asked: string[] = [];
    const node = answering([{}], (path) => asked.push(path));
    expect(await readTransaction(node, '0'.repeat(64), known())).toEqual({ kind: 'not-found' });
    expect(asked).toEqual(['/wallet/gettransactioninfobyid']);
  });
});

describe('what cannot be is refused', () => {
  const LIES: [string, string, (shown: Shown) => void][] = [
    ['another transaction', 'exact', (lie) => Object.assign(lie, { json: copyOf('contract').json })],
    ['the info of another transaction', 'exact', (lie) => Object.assign(lie, { info: copyOf('contract').info })],
    ['no transaction', 'exact', (lie) => Object.assign(lie, { json: {} })],
    ['bytes that are not hex', 'exact', ({ json }) => Object.assign(json, { raw_data_hex: 'zz' })],
    [
      'another amount than the call',
      'exact',
      ({ info }) => Object.assign(info.log[0], { data: '1'.padStart(64, '0') }),
    ],
    [
      'another recipient than the call',
      'exact',
      ({ info }) => Object.assign(info.log[0].topics, { 2: '6'.repeat(64) }),
    ],
    ['no log of a call that succeeded', 'exact', ({ info }) => Object.assign(info, { log: [] })],
    [
      'success of what the block says failed',
      'reverted',
      ({ info }) => Object.assign(info.receipt, { result: 'SUCCESS' }),
    ],
    [
      'failure of what the block says succeeded',
      'exact',
      ({ info }) => Object.assign(info.receipt, { result: 'REVERT' }),
    ],
    ['logs of a transfer of TRX', 'trx', ({ info }) => Object.assign(info, { log: copyOf('exact').info.log })],
    ['data of a Transfer that is too short', 'contract', ({ info }) => Object.assign(info.log[0], { data: '19' })],
    ['no block', 'exact', ({ info }) => Object.assign(info, { blockNumber: undefined })],
    ['a height that is no integer', 'exact', ({ info }) => Object.assign(info, { blockNumber: 1.5 })],
    ['a time beyond all calendars', 'exact', ({ info }) => Object.assign(info, { blockTimeStamp: 9e15 })],
    [
      'a time more than an hour ahead',
      'exact',
      ({ info }) => Object.assign(info, { blockTimeStamp: newest.now + 3_600_001 }),
    ],
    ['a time before all blocks', 'exact', ({ info }) => Object.assign(info, { blockTimeStamp: -1 })],
    ['a height that no chain reaches', 'exact', ({ info }) => Object.assign(info, { blockNumber: 9007199254740991 })],
    ['logs that are no list', 'contract', ({ info }) => Object.assign(info, { log: 'many' })],
  ];

  test.each(LIES)('%s', async (_what, name, bend) => {
    const lie = copyOf(name);
    bend(lie);
    const node = answering([lie.info, lie.json]);
    const failure = await readTransaction(node, lie.txId, known()).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  });
});

test('what is asked for a payer is small, and not held against the node', async () => {
  const options: unknown[] = [];
  const { txId, info, json } = copyOf('exact');
  const node = answering([info, json], (_path, call) => options.push(call));
  expect(await readTransaction(node, txId, known())).toMatchObject({ kind: 'done' });
  expect(options).toEqual([QUESTION, QUESTION]);
});

/** Any JSON, and sound answers of which any part is any JSON. */
const hostile = fc.oneof(
  fc.jsonValue(),
  fc
    .tuple(
      fc.constantFrom(...SHOWN, 'trx'),
      fc.array(fc.tuple(fc.nat(), fc.jsonValue()), { minLength: 1, maxLength: 3 }),
    )
    .map(([name, changes]) => ({ name, changes })),
);

function bent(value: Json, changes: readonly (readonly [number, unknown])[]): Json {
  const copy = structuredClone(value);
  for (const [where, replacement] of changes) {
    const places: [Json, string][] = [];
    const collect = (part: Json) => {
      if (typeof part !== 'object' || part === null) return;
      for (const key of Object.keys(part)) {
        places.push([part, key]);
        collect(part[key]);
      }
    };
    collect(copy);
    const place = places[where % Math.max(1, places.length)];
    if (place !== undefined) place[0][place[1]] = replacement;
  }
  return copy;
}

test('whatever a node says, the answer is one of the closed set or a refusal', async () => {
  const invoice = {
    account: TO,
    requestedMicro: microUsdt(25_000_000n),
    payableMicro: microUsdt(AMOUNT),
    status: 'PENDING' as const,
    createdAt: unixMs(0),
    payableAfter: unixMs(0),
    firstSeenAt: null,
    payingTxId: null,
    wasSighted: false,
    solidNumber: 1,
    head: newest.head,
    isPaused: false,
  };
  await fc.assert(
    fc.asyncProperty(hostile, hostile, fc.constantFrom(...SHOWN, 'trx'), async (first, second, asked) => {
      const { txId, ...true_ } = copyOf(asked);
      const said = (what: Json, whole: Json) => ('changes' in Object(what) ? bent(whole, what.changes) : what);
      const node = answering([said(first, true_.info), said(second, true_.json)]);
      try {
        const answer = answerLookup(invoice, await readTransaction(node, txId, known()));
        expect(JSON.parse(JSON.stringify(answer))).toMatchObject({ code: expect.stringMatching(/^[a-z_]+$/) });
      } catch (error) {
        expect(error).toBeInstanceOf(AppError);
      }
    }),
    { numRuns: 500 },
  );
});

test('bytes that are no transaction of ours to read are borne', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (raw) => {
      const txId = createHash('sha256').update(raw).digest('hex');
      const { info, json } = copyOf('trx');
      const answer = {
        txId,
        info: { ...info, id: txId },
        json: { ...json, raw_data_hex: Buffer.from(raw).toString('hex') },
      };
      try {
        expect(facts(answer)).toMatchObject({ kind: 'done' });
      } catch (error) {
        expect(error).toMatchObject({ message: expect.any(String) });
      }
    }),
  );
});
