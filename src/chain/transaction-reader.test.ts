import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { payerOf, startTestDevnet } from '../../test/support/devnet.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { unlimitedNode } from '../domain/node.ts';
import { unixMs } from '../domain/time.ts';
import { createLogger } from '../runtime/log.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { type AccountHex, accountToAddress } from '../tron/address.ts';
import { createNodePool } from './node-pool.ts';
import { createTransactionReader } from './transaction-reader.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({
    connection: database.connection,
    poolSize: 4,
    applicationName: 'test',
    onError: () => undefined,
  });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const USDT = '5'.repeat(40) as AccountHex;
const question = (number: number, solidNumber: number | null = null) => ({
  txId: number.toString(16).padStart(64, '0'),
  askedFor: 'link',
  solidNumber,
});

async function started() {
  const devnet = await startTestDevnet();
  const log = createLogger({ level: 'silent' });
  const clock = { ms: 1_800_000_000_000, spent: 0 };
  const now = () => unixMs(clock.ms);
  const nodes = [unlimitedNode(devnet.url)];
  const network = 'devnet';
  const pool = createNodePool({ network, nodes, now, log, metrics: createMetrics(), blockMs: 3000 });
  onTestFinished(() => pool.close());
  const spend = () => {
    clock.spent += 1;
    return true;
  };
  const read = createTransactionReader({ db, network, pool, usdt: USDT, now, log, spend });
  return { devnet, clock, read };
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
    const ask = (solidNumber: number) => read({ txId, askedFor: 'link', solidNumber });
    expect(await ask(number - 1)).toMatchObject({ kind: 'done', blockNumber: number });
    clock.ms += 3000;
    await ask(number);
    expect(clock.spent).toBe(4);
    clock.ms += 10 * 60_000 - 1;
    await ask(number);
    expect(clock.spent).toBe(4);
    clock.ms += 1;
    await ask(number);
    expect(clock.spent).toBe(6);
  });
});

test('of many questions while a node hangs few wait, and the others are told at once', async () => {
  const { devnet, read } = await started();
  devnet.setFault({ kind: 'hang' });
  let answered = 0;
  const waiting = Array.from({ length: 20 }, (_, number) => read(question(number)).then(() => (answered += 1)));
  expect(await read(question(20))).toEqual({ kind: 'unavailable' });
  expect(answered).toBe(0);
  await Promise.all(waiting);
  expect(answered).toBe(20);
});
