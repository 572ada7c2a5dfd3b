import { once } from 'node:events';
import { connect } from 'node:net';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { CONNECTION_LIMITS } from '../../src/faces/web/bound-connections.ts';
import {
  call,
  createInvoice,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { runSql } from './sql.ts';

/** More than the pool's size, so that some wait for a connection. */
const REQUESTS = 20;

let service: TestService;
let operator: pg.Client;
beforeAll(async () => {
  service = await startTestService({ config: { databasePoolSize: 4 } });
  operator = new pg.Client({ connectionString: service.ownerString });
  await operator.connect();
});
afterAll(async () => {
  await operator?.end();
  await service?.stop();
});
afterEach(() => operator.query('rollback'));

/** The server closes a connection on which nothing has happened for this long. */
const CONNECTION_MS = 30_000;

/** On a slow machine, a request may wait so long for its answer that its connection is closed, which is a refusal too. */
function closed(error: unknown, startedMs: number): number {
  const isClosed = error instanceof Error && 'code' in error && error.code === 'UND_ERR_SOCKET';
  if (isClosed && performance.now() - startedMs >= CONNECTION_MS) return 503;
  throw error;
}

test('requests that hold all connections of theirs hold up neither a payment nor its webhook', async () => {
  const id = (await createInvoice(service)).body.invoiceId;
  const invoice = await payableOf(service, id);
  const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
  // Every request reads this table, but following the chain never does.
  await operator.query('begin; lock table api_keys in access exclusive mode');
  let isPaid = false;
  // Requests that the database refuses after a while are repeated until the payment is recorded.
  const again = async (ask: () => Promise<{ status: number }>) => {
    const statuses: number[] = [];
    do {
      const startedMs = performance.now();
      statuses.push(
        await ask().then(
          ({ status }) => status,
          (error: unknown) => closed(error, startedMs),
        ),
      );
    } while (!isPaid);
    return statuses;
  };
  const reads = Array.from({ length: REQUESTS }, () => again(() => readInvoice(service, id)));
  const creates = Array.from({ length: REQUESTS }, () => again(() => createInvoice(service)));
  await untilBlocked(2);
  await payScenario(service.payer, { scenario: 'exact', contracts: { usdt, fakeUsdt, multisend }, invoice });
  service.devnet.mine();
  service.devnet.mineUntilSolid();
  const received = await eventually(
    () => inboxOf(service, id),
    (webhooks) => webhooks.some(({ type }) => type === 'invoice.paid'),
  );
  expect(received.at(-1)).toMatchObject({ type: 'invoice.paid', verified: true });
  isPaid = true;
  await operator.query('rollback');
  // On a slow machine, some have waited too long for a connection.
  for (const status of (await Promise.all(reads)).flat()) expect([200, 503]).toContain(status);
  for (const status of (await Promise.all(creates)).flat()) expect([201, 503]).toContain(status);
});

test('however many ask whether the service is ready, which is never refused, one looks at a time', async () => {
  // Two connections and no watcher, which would compare the schema itself and be blocked too.
  const api = await startTestService({ config: { roles: ['api'], databasePoolSize: 2 } });
  const migrating = new pg.Client({ connectionString: api.ownerString });
  try {
    await migrating.connect();
    await migrating.query('begin; lock table schema_migrations in access exclusive mode');
    const answers = Array.from({ length: REQUESTS }, () => call(`${api.url}/readyz`));
    await untilBlocked(1, api);
    // A second check would use the second connection, but the invoice gets it.
    expect((await createInvoice(api)).status).toBe(201);
    expect(await countBlocked(api)).toBe(1);
    await migrating.query('rollback');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(REQUESTS).fill(200));
  } finally {
    await migrating.end();
    await api.stop();
  }
});

test('one address that opens connections and asks for nothing loses its oldest, and others are answered', async () => {
  const port = Number(new URL(service.url).port);
  const open = () => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }).on('error', () => undefined);
  const oldest = open();
  await once(oldest, 'connect');
  // Before the server's request timeout, which would be answered.
  const closed = once(oldest, 'close');
  const sockets = Array.from({ length: CONNECTION_LIMITS.idleOfNetwork }, open);
  try {
    await closed;
    expect(oldest.bytesRead).toBe(0);
    expect((await createInvoice(service)).status).toBe(201);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

async function countBlocked(of = service): Promise<number> {
  const rows = await runSql(
    of,
    // The watch of the capacity also reads the keys periodically.
    `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
     and query not like '%as has_keys%'`,
  );
  return rows.length;
}

async function untilBlocked(count: number, of = service): Promise<void> {
  await eventually(
    () => countBlocked(of),
    (blocked) => blocked === count,
  );
}
