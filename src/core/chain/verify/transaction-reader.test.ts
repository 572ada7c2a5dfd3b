import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { payerOf, startTestDevnet } from '../../../../test/support/devnet.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../../../../test/support/postgres.ts';
import { unlimitedNode } from '../../domain/node.ts';
import { unixMs } from '../../domain/time.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import type { Database } from '../../store/db/database.ts';
import { createNodePool } from '../nodes/node-pool.ts';
import { createTransactionReader } from './transaction-reader.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database, 4);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const USDT = '5'.repeat(40) as AccountHex;
const question = (number: number, solidNumber: number | null = null) => ({
  txId: number.toString(16).padStart(64, '0'),
  askedFor: 'link',
  client: 'network',
  solidNumber,
  head: null,
});

/** `questions`: how many may be asked, of two requests each. `nodes`: in place of those of a devnet. */
type Options = { count?: number; questions?: number; nodes?: readonly { url: string }[] };

async function started({ count = 1, questions = Number.POSITIVE_INFINITY, nodes = [] }: Options = {}) {
  const devnet = await startTestDevnet();
  const servers = [devnet, ...(await Promise.all(Array.from({ length: count - 1 }, () => devnet.addNode())))];
  const log = createLogger({ level: 'silent' });
  const clock = { ms: 1_800_000_000_000, spent: 0 };
  const now = () => unixMs(clock.ms);

  const network = 'devnet';
  const pool = createNodePool({
    network,
    nodes: (nodes.length > 0 ? nodes : servers).map(({ url }) => unlimitedNode(url)),
    now,
    log,
    metrics: createMetrics(),
    blockMs: 2500,
  });
  onTestFinished(() => pool.close());
  const spend = () => {
    if (clock.spent >= questions) return false;
    clock.spent += 1;
    return true;
  };
  const read = createTransactionReader({ db, network, pool, usdt: USDT, now, log, spend });
  const states = () => pool.health().map(({ state }) => state);
  const requests = () => pool.health().reduce((sum, health) => sum + health.requests, 0);
  return { devnet, servers, clock, read, states, requests };
}

describe('what nodes said is kept in a bounded place', () => {
  test('the answer that was used least recently goes first', async () => {
    const { clock, read } = await started();
    for (let number = 0; number < 500; number++) await read(question(number));
    await read(question(0));
    expect(clock.spent).toBe(500);
    await read(question(500));
    await read(question(0));
    expect(clock.spent).toBe(501);
    await read(question(1));
    expect(clock.spent).toBe(502);
  });

  test('an answer is neither fresh nor old when the clock was set back', async () => {
    const { clock, read } = await started();
    await read(question(1));
    clock.ms -= 1000;
    await read(question(1));
    expect(clock.spent).toBe(2);
  });

  test('whether an answer is final is decided when it is read, and not by what becomes irreversible later', async () => {
    const { devnet, clock, read } = await started();
    devnet.mineUntilSolid();
    const txId = await payerOf(devnet).sendTrx({ to: accountToAddress(USDT), amountSun: 1n });
    devnet.mine();
    const { number } = devnet.head();
    const ask = (solidNumber: number) => read({ txId, askedFor: 'link', client: 'network', solidNumber, head: null });
    expect(await ask(number - 1)).toMatchObject({ kind: 'done', blockNumber: number });
    clock.ms += 3000;
    await ask(number);
    expect(clock.spent).toBe(2);
    clock.ms += 10 * 60_000 - 1;
    await ask(number);
    expect(clock.spent).toBe(2);
    clock.ms += 1;
    await ask(number);
    expect(clock.spent).toBe(3);
  });
});

test('of many questions while a node hangs few wait, and the others are told at once', async () => {
  const { devnet, read } = await started();
  devnet.setFault({ kind: 'hang' });
  let answered = 0;
  const of = (link: number, number: number) => ({ ...question(number), askedFor: `link ${link}` });
  const waiting = Array.from({ length: 20 }, (_, number) =>
    read(of(Math.floor(number / 4), number)).then(() => (answered += 1)),
  );
  expect(await read(of(6, 20))).toEqual({ kind: 'unavailable', why: 'for-now' });
  expect(answered).toBe(0);
  await Promise.all(waiting);
  expect(answered).toBe(20);
});

test('of one link four questions wait, and the line stays open for others', async () => {
  const { devnet, read } = await started();
  devnet.setFault({ kind: 'hang' });
  let answered = 0;
  const waiting = Array.from({ length: 4 }, (_, number) => read(question(number)).then(() => (answered += 1)));
  expect(await read(question(4))).toEqual({ kind: 'unavailable', why: 'for-now' });
  expect(answered).toBe(0);
  const other = read({ ...question(4), askedFor: 'another' }).then(() => (answered += 1));
  await Promise.all([...waiting, other]);
  expect(answered).toBe(5);
});

describe('what a payer may ask of nodes', () => {
  test('is paid for by two requests at once, so that a question is answered whole or not at all', async () => {
    const { clock, read, requests } = await started({ count: 2, questions: 1 });
    expect(await read(question(1))).toEqual({ kind: 'not-found' });
    expect([clock.spent, requests()]).toEqual([1, 2]);
    expect(await read(question(2))).toEqual({ kind: 'unavailable', why: 'used-up' });
    expect(requests()).toBe(2);
  });

  test('ends where a second node would have to be paid for', async () => {
    const { devnet, read, servers } = await started({ count: 2, questions: 1 });
    const txId = await payerOf(devnet).sendTrx({ to: accountToAddress(USDT), amountSun: 1n });
    devnet.mine();
    servers[0]?.setFault({ kind: 'error-200', paths: ['/wallet/gettransactionbyid'] });
    expect(await read({ ...question(0), txId })).toEqual({ kind: 'unavailable', why: 'used-up' });
  });
});

/** A node that knows no transaction, and shows all of them as large as it is told. */
async function startPlainNode(): Promise<{ url: string; answerBytes: number }> {
  const node = { url: '', answerBytes: 0 };
  const server = createServer((_request, response) => {
    response.end(node.answerBytes === 0 ? '{}' : JSON.stringify({ log: 'a'.repeat(node.answerBytes) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  node.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return node;
}

describe('a payer cannot have a node paused by choosing a transaction', () => {
  test('that is too large, which is remembered for ten minutes for that link and transaction', async () => {
    const nodes = [await startPlainNode(), await startPlainNode()];
    const { clock, read, states, requests } = await started({ nodes });
    for (const node of nodes) node.answerBytes = 600_000;
    expect(await read(question(1))).toEqual({ kind: 'unavailable', why: 'too-large' });
    expect(states()).not.toContain('paused');
    expect(requests()).toBe(2);
    for (const node of nodes) node.answerBytes = 0;
    clock.ms += 10 * 60_000 - 1;
    expect(await read(question(1))).toEqual({ kind: 'unavailable', why: 'too-large' });
    expect(requests()).toBe(2);
    expect(await read({ ...question(1), askedFor: 'another' })).toEqual({ kind: 'not-found' });
    clock.ms += 1;
    expect(await read(question(1))).toEqual({ kind: 'not-found' });
  });

  test('that is too large of one node, which is told although the other one does not know it', async () => {
    const nodes = [await startPlainNode(), await startPlainNode()];
    const { read } = await started({ nodes });
    for (const [index, node] of nodes.entries()) {
      node.answerBytes = 600_000;
      expect(await read(question(index))).toEqual({ kind: 'unavailable', why: 'too-large' });
      node.answerBytes = 0;
    }
  });

  test('that takes long to read', async () => {
    const { read, servers, states } = await started({ count: 2 });
    for (const server of servers) server.setFault({ kind: 'hang' });
    expect(await read(question(1))).toEqual({ kind: 'unavailable', why: 'for-now' });
    expect(states()).not.toContain('paused');
  });
});
