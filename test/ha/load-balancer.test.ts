import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { freePorts } from '../../deploy/ha/free-ports.ts';
import { type Program, startProgram, stopProgram } from '../../deploy/ha/program.ts';
import { findPrograms, type Programs } from '../../deploy/ha/requirements.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { openEventStream } from '../support/event-stream.ts';
import { withClient } from '../support/postgres-template.ts';
import { call, createInvoice, eventually, payableOf, startTestService, type TestService } from '../support/service.ts';

const CONFIGURATION = fileURLToPath(new URL('../../deploy/ha/load-balancer.cfg', import.meta.url));

let first: TestService;
let second: Service | null = null;
let proxy: Program;
/** The first service, as clients of the proxy see it. */
let shop: TestService;
const programs = await findPrograms();

beforeEach(async () => {
  if (typeof programs === 'string') return;
  first = await startTestService();
  const other = await startSecond(first);
  second = other;
  const [port] = await freePorts(1);
  proxy = await startProxy(programs, `127.0.0.1:${port}`, [first.url, other.url]);
  shop = { ...first, url: `http://127.0.0.1:${port}` };
  await eventually(
    () => createInvoice(shop).catch(() => ({ status: 0 })),
    ({ status }) => status === 201,
  );
});
afterEach(async () => {
  if (typeof programs === 'string') return;
  await stopProgram(proxy, 2000);
  await second?.stop();
  second = null;
  await first.stop();
});

test('a process stops while shops create: no request is lost, and the other takes them all', async (context) => {
  if (typeof programs === 'string') return context.skip(programs);
  let isStopped = false;
  const answers: Promise<number>[] = [];
  const created = (async () => {
    for (let count = 0; count < 400 || !isStopped; count += 1) {
      const answer = createInvoice(shop).then(({ status }) => status);
      answers.push(answer);
      // Eight at a time.
      await answers.at(-8);
    }
  })();
  await eventually(
    () => answers.length,
    (count) => count > 50,
  );
  await second?.stop();
  second = null;
  isStopped = true;
  await created;
  expect((await Promise.all(answers)).filter((status) => status !== 201)).toEqual([]);
});

test('the database is away: what is asked for is answered by a process, and not by the proxy', async (context) => {
  if (typeof programs === 'string') return context.skip(programs);
  // No one can connect, and existing connections are closed: /readyz sees the same if the primary is lost.
  await setConnectable(first, false);
  try {
    await eventually(
      () => createInvoice(shop).catch(() => null),
      (answer) => answer?.body?.code === 'UNAVAILABLE' && answer.headers['retry-after'] !== undefined,
    );
    // Longer than the proxy needs to notice that none is ready.
    await eventually(
      () => call(`${shop.url}/readyz`),
      ({ status }) => status === 503,
    );
    expect((await createInvoice(shop)).body.code).toBe('UNAVAILABLE');
  } finally {
    await setConnectable(first, true);
  }
  await eventually(
    () => createInvoice(shop),
    ({ status }) => status === 201,
  );
});

test('an open page hears through the proxy of its payment when it is seen', async (context) => {
  if (typeof programs === 'string') return context.skip(programs);
  const { body } = await createInvoice(shop);
  const stream = await openEventStream(`${shop.url}${new URL(body.checkoutUrl).pathname}/live`);
  try {
    expect(stream.status).toBe(200);
    const { address, amountMicro } = await payableOf(shop, body.invoiceId);
    await first.payer.transfer({ contract: first.devnet.usdtContract, to: address, amountMicro });
    first.devnet.mine();
    await eventually(
      () => stream.messages().map(({ state }) => state),
      (states) => states.includes('seen'),
    );
  } finally {
    stream.close();
  }
});

async function setConnectable({ connectionString }: TestService, isAllowed: boolean): Promise<void> {
  const name = new URL(connectionString).pathname.slice(1);
  await withClient(inject('postgres'), async (client) => {
    await client.query(`alter database ${name} allow_connections ${isAllowed}`);
    if (!isAllowed) {
      await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
    }
  });
}

/** Another process would look the same to the proxy. */
function startSecond({ connectionString }: TestService): Promise<Service> {
  return startService({
    config: {
      ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 5, roles: ['api'], networks: {} },
      ...{ metrics: null, trustProxy: ['127.0.0.1'], rateLimit: { perSecond: 100_000, burst: 100_000 } },
      webhooks: { localTargets: false, retentionDays: 90 },
    },
    keyRing: null,
    connection: connectionString,
    log: createLogger({ level: 'silent' }),
  });
}

function startProxy({ haproxy, setpriv }: Programs, bind: string, urls: (string | null)[]): Promise<Program> {
  const [api1 = '', api2 = ''] = urls.map((url) => new URL(url ?? '').host);
  return startProgram({
    ...{ setpriv, user: null, command: haproxy, args: ['-db', '-f', CONFIGURATION] },
    env: { BIND: bind, API1: api1, API2: api2 },
    ...{ cwd: '/', logFile: '/dev/null' },
  });
}
