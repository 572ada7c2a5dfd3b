import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { startService } from '../../src/server/service.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { ask, expectProblem, fieldsOf, get, type Reply, sendRaw } from './ask.ts';
import { addTyped } from './feed-events.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';

/** How many requests of one key may wait. */
const OF_KEY = 10;
/** A waiting request checks again after ten seconds, so an earlier response means that it was woken up. */
const SOON_MS = 9900;
/** A request that waits by mistake, or behind a waiting one, takes the longest wait. */
const WAITED_MS = 29_000;
const EMPTY = '{"data":[],"hasMore":false,"latest":null}';

let service: TestService;
/** The longest possible wait, during the tests. */
let longest: Promise<Reply>;
beforeAll(async () => {
  // Fewer connections than waiting requests.
  service = await startTestService({ config: { databasePoolSize: 4 } });
  longest = page('wait=30', await createTestProject(service.db));
});
afterAll(() => service.stop());

const page = (query: string, { apiKey }: { apiKey: string }, url = service.url): Promise<Reply> =>
  ask(`${url}/v1/events?${query}`, { headers: { 'x-api-key': apiKey } });

/** Returns once earlier requests have been answered or are waiting: it's sent after them, and waits for a second. */
async function settled(project: TestProject): Promise<void> {
  const key = await addKey(service.db, project.id);
  const startedMs = performance.now();
  expect((await page('types=endpoint.disabled&wait=1', key)).status).toBe(200);
  expect(performance.now() - startedMs).toBeGreaterThan(900);
}

async function timed<Result>(work: Promise<Result>): Promise<{ result: Result; tookMs: number }> {
  const startedMs = performance.now();
  const result = await work;
  return { result, tookMs: performance.now() - startedMs };
}

test('an event that is there is told at once, and the page of none is that of no wait', async () => {
  const project = await createTestProject(service.db);
  const { result: empty, tookMs } = await timed(page('wait=1', project));
  expect(empty).toMatchObject({ status: 200, text: EMPTY });
  expect(tookMs).toBeGreaterThan(900);
  const [id] = await addTyped(service.db, project.id, ['ping']);
  const there = await timed(page('wait=30', project));
  expect(there.result.text).toBe(`{"data":[{"id":"${id}","type":"ping"}],"hasMore":false,"latest":"${id}"}`);
  expect(there.tookMs).toBeLessThan(WAITED_MS);
  const { body } = await page('wait=1&types=invoice.paid', project);
  expect(body).toEqual({ data: [], hasMore: false, latest: id, next: id });
});

test('a wait is over with an event of the project and of the types, and with no other', async () => {
  const [project, other] = [await createTestProject(service.db), await createTestProject(service.db)];
  const [first = ''] = await addTyped(service.db, project.id, ['ping']);
  const all = timed(page(`wait=30&after=${first}`, project));
  const some = timed(page(`wait=30&after=${first}&types=invoice.paid,invoice.expired`, project));
  const theirs = page('wait=2', other);
  await settled(project);
  const [left] = await addTyped(service.db, project.id, ['transfer.unmatched']);
  expect((await all).result.body).toMatchObject({ data: [{ id: left }], latest: left });
  await settled(project);
  const [, paid] = await addTyped(service.db, project.id, ['ping', 'invoice.paid']);
  const { result, tookMs } = await some;
  expect(result.body).toEqual({
    data: [{ id: paid, type: 'invoice.paid' }],
    hasMore: false,
    latest: paid,
    next: paid,
  });
  expect(tookMs).toBeLessThan(SOON_MS);
  expect((await theirs).text).toBe(EMPTY);
});

test('what happens on the chain ends a wait at another process', async () => {
  const project = await createTestProject(service.db);
  const { clock, connectionString: connection } = service;
  const other = await startService({
    config: {
      ...{ host: '127.0.0.1', port: 0, publicUrl: null, databasePoolSize: 4, roles: ['api'], networks: {} },
      ...{ metrics: null, trustProxy: [], rateLimit: { perSecond: 1000, burst: 1000 } },
      webhooks: { localTargets: true, retentionDays: 90 },
    },
    ...{ connection, keyRing: TEST_KEY_RING, log: createLogger({ level: 'silent' }), clock },
  });
  onTestFinished(() => other.stop());
  const waiting = timed(page('wait=30&types=transfer.unmatched', project, other.url ?? ''));
  await settled(project);
  const to = project.addresses[0] ?? '';
  await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro: 1_000_000n });
  service.devnet.mineUntilSolid();
  const { result, tookMs } = await waiting;
  expect(result.body).toMatchObject({ data: [{ type: 'transfer.unmatched' }] });
  expect(tookMs).toBeLessThan(SOON_MS);
});

test('no event falls between the read and the wait', async () => {
  const project = await createTestProject(service.db);
  let after = '';
  for (let round = 0; round < 40; round += 1) {
    const waiting = timed(page(`wait=30${after}`, project));
    // Covers each moment of a request.
    await delay(round / 4);
    const [id] = await addTyped(service.db, project.id, ['ping']);
    const { result, tookMs } = await waiting;
    expect(result.body.data).toMatchObject([{ id }]);
    expect(tookMs).toBeLessThan(SOON_MS);
    after = `&after=${id}`;
  }
});

test('an event that was committed while nobody listened is told when somebody does again', async () => {
  const project = await createTestProject(service.db);
  const waiting = timed(page('wait=30', project));
  await settled(project);
  const cut = await runSql(
    service,
    `select pg_terminate_backend(pid) as is_cut from pg_stat_activity
     where datname = current_database() and query like 'listen%quittance_events%'`,
  );
  expect(cut).toEqual([{ is_cut: true }]);
  const [id] = await addTyped(service.db, project.id, ['ping']);
  const { result, tookMs } = await waiting;
  expect(result.body.data).toMatchObject([{ id }]);
  expect(tookMs).toBeLessThan(SOON_MS);
});

test('a key that was revoked during the wait is told nothing', async () => {
  const project = await createTestProject(service.db);
  const key = await addKey(service.db, project.id);
  const [told, over] = [page('wait=30', key), page('wait=8&types=invoice.paid', key)];
  await settled(project);
  await revokeApiKey(service.db, key.keyId, unixMs(service.clock.now()));
  await addTyped(service.db, project.id, ['ping']);
  expectProblem(await told, 401, 'UNAUTHENTICATED');
  expectProblem(await over, 401, 'UNAUTHENTICATED');
});

/** Returns the metric of waiting requests. */
async function counted(): Promise<number> {
  const [, count] =
    /^quittance_event_waits (\d+)$/m.exec(await (await fetch(`${service.metricsUrl}/metrics`)).text()) ?? [];
  return Number(count);
}

test('ten requests of a key wait, one more is answered at once, and one that hangs up makes room', async () => {
  const project = await createTestProject(service.db);
  const gone = new AbortController();
  const headers = { 'x-api-key': project.apiKey };
  const waiting = Array.from({ length: OF_KEY }, () =>
    request(`${service.url}/v1/events?wait=30`, { headers, signal: gone.signal }).catch(() => 'gone'),
  );
  await settled(project);
  // Besides the longest wait, as long as that lasts.
  expect([OF_KEY, OF_KEY + 1]).toContain(await counted());
  const more = await timed(page('wait=30', project));
  expect(more.result).toMatchObject({ status: 200, text: EMPTY });
  expect(more.tookMs).toBeLessThan(WAITED_MS);
  gone.abort();
  expect(await Promise.all(waiting)).toEqual(Array(OF_KEY).fill('gone'));
  await eventually(
    async () => (await timed(page('wait=1', project))).tookMs,
    (tookMs) => tookMs > 900,
  );
  await eventually(counted, (count) => count <= 1);
});

test('more requests than there are places wait, and hold up nobody', async () => {
  const project = await createTestProject(service.db);
  const keys = await Promise.all(Array.from({ length: 20 }, () => addKey(service.db, project.id)));
  const waiting = keys.flatMap((key) => Array.from({ length: OF_KEY }, () => page('wait=30', key)));
  await settled(project);
  const { result, tookMs } = await timed(get(service, '/v1/invoices/none'));
  expect(result.status).toBe(404);
  expect(tookMs).toBeLessThan(WAITED_MS);
  const [id] = await addTyped(service.db, project.id, ['ping']);
  for (const { status, body } of await Promise.all(waiting)) {
    expect({ status, data: body.data }).toEqual({ status: 200, data: [{ id, type: 'ping' }] });
  }
});

test('requests that hang up while they wait keep no place from others', async () => {
  const project = await createTestProject(service.db);
  const keys = await Promise.all(Array.from({ length: 20 }, () => addKey(service.db, project.id)));
  const gone = new AbortController();
  const waiting = keys.flatMap(({ apiKey }) =>
    Array.from({ length: OF_KEY }, () =>
      request(`${service.url}/v1/events?wait=30`, { headers: { 'x-api-key': apiKey }, signal: gone.signal }).catch(
        () => 'gone',
      ),
    ),
  );
  await settled(project);
  gone.abort();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['gone']));
  // They wake up and read once more.
  await settled(project);
  const { result, tookMs } = await timed(get(service, '/v1/invoices/none'));
  expect(result.status).toBe(404);
  expect(tookMs).toBeLessThan(WAITED_MS);
});

test('HEAD waits too', async () => {
  const project = await createTestProject(service.db);
  const headers = { 'x-api-key': project.apiKey };
  const head = ask(`${service.url}/v1/events?wait=30`, { method: 'HEAD', headers });
  await settled(project);
  await addTyped(service.db, project.id, ['ping']);
  expect(await head).toMatchObject({ status: 200, text: '' });
});

test('a request behind another on its connection does not wait, for nothing would tell that its client is gone', async () => {
  const project = await createTestProject(service.db);
  const ask = (wait: number, more: string) =>
    `GET /v1/events?wait=${wait} HTTP/1.1\r\nHost: q\r\nX-Api-Key: ${project.apiKey}\r\n${more}\r\n`;
  const { result, tookMs } = await timed(sendRaw(service.url, ask(1, '') + ask(30, 'Connection: close\r\n')));
  expect(result.text.split(EMPTY)).toHaveLength(3);
  expect(tookMs).toBeLessThan(WAITED_MS);
});

test.each(['', '0', '31', '1.5', '-1', '030', '1e1', '0x1', '%2B1', '1%20', '٣', '9'.repeat(400)])(
  'a wait of %j seconds is refused',
  async (wait) => {
    const problem = expectProblem(await page(`wait=${wait}`, service.project), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['wait']);
  },
);

test('a wait that is given twice is refused', async () => {
  const problem = expectProblem(await page('wait=1&wait=30', service.project), 400, 'INVALID_REQUEST');
  expect(fieldsOf(problem)).toEqual(['wait']);
});

test('no time limit of the server cuts the longest wait', async () => {
  expect(await longest).toMatchObject({ status: 200, text: EMPTY });
});

test('a stop of the service answers who waits, and waits for nobody', async () => {
  const project = await createTestProject(service.db);
  const waiting = page('wait=30', project);
  await settled(project);
  const { tookMs } = await timed(service.stopService());
  const { status, text, headers } = await waiting;
  expect({ status, text, connection: headers['connection'] }).toEqual({
    status: 200,
    text: EMPTY,
    connection: 'close',
  });
  expect(tookMs).toBeLessThan(20_000);
});
