import { createHash, randomUUID } from 'node:crypto';
import { parseAddress } from '@quittance/tron/address';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { insertWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { disableEndpoint } from '../../src/faces/operator/subjects/webhook-sending.ts';
import { startService } from '../../src/server/service.ts';
import {
  createTestProject,
  eventually,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { ask, expectProblem, fieldsOf, order, post, type Reply } from './ask.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';
import { type Receiver, startReceiver } from './webhook-receiver.ts';

let service: TestService;
let receiver: Receiver;
beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver.stop();
  await service.stop();
});

type Call = (method: string, path?: string, body?: object | string, more?: Record<string, string>) => Promise<Reply>;
type Shop = TestProject & { keyUuid: string; call: Call };

/** Creates a project with a key that may do everything. */
async function newShop(at: TestService = service): Promise<Shop> {
  const project = await createTestProject(at.db);
  const { apiKey, keyId } = await addKey(at.db, project.id, { scopes: SCOPES });
  return { ...project, apiKey, keyUuid: keyId, call: callBy(at, apiKey) };
}

function callBy({ url }: Pick<TestService, 'url'>, apiKey: string): Call {
  return (method, path = '', body, more = {}) =>
    ask(`${url}/v1/webhook-endpoints${path}`, {
      method,
      headers: { 'x-api-key': apiKey, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...more },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
}

const urlOf = (path: string) => `http://127.0.0.1:${receiver.port}${path}`;
const NOT_THERE = 'whe_01k2m9t0b3e8zr6v5x4c7d1f2g';

async function newEndpoint({ call }: Shop, more: object = {}): Promise<Json> {
  const made = await call('POST', '', { url: urlOf(`/${randomUUID()}`), ...more });
  expect(made.status, made.text).toBe(201);
  return made.body;
}

test('an endpoint is made, read, changed, tested, rotated, disabled and enabled, and its secret is shown where it is made alone', async () => {
  const shop = await newShop();
  const path = `/${randomUUID()}`;
  const made = await shop.call('POST', '', { url: urlOf(path), events: ['ping', 'invoice.paid'], description: 'shop' });
  const { endpointId, secret } = made.body;
  expect([made.status, made.headers['location']]).toEqual([201, `/v1/webhook-endpoints/${endpointId}`]);
  expect(made.body).toMatchObject({
    projectId: shop.projectId,
    description: 'shop',
    eventTypes: ['invoice.paid', 'ping'],
  });

  const tested = await shop.call('POST', `/${endpointId}/test`);
  expect(tested.body).toMatchObject({ endpointId, isDelivered: true, status: 204, diagnosis: [] });
  const [ping] = receiver.at(path);
  expect(new Webhook(secret).verify(ping?.raw ?? '', ping?.headers as Record<string, string>)).toMatchObject({
    type: 'ping',
  });

  const changed = await shop.call('PATCH', `/${endpointId}`, { events: ['all'], description: '' });
  expect(changed.body).toMatchObject({
    endpointId,
    eventTypes: null,
    description: '',
    status: 'active',
    url: urlOf(path),
  });
  const rotated = await shop.call('POST', `/${endpointId}/rotate`, { overlap: '1h' });
  expect([rotated.status, rotated.body.secret === secret]).toEqual([200, false]);
  const disabled = await shop.call('POST', `/${endpointId}/disable`);
  expect(disabled.body).toMatchObject({ endpointId, status: 'disabled', disabledReason: 'by hand' });
  expectProblem(await shop.call('POST', `/${endpointId}/disable`, { reason: 'again' }), 409, 'ENDPOINT_CONFLICT');
  const enabled = await shop.call('POST', `/${endpointId}/enable`);
  expect(enabled.body).toMatchObject({ endpointId, status: 'active', disabledReason: 'by hand' });

  const [shown, list] = [await shop.call('GET', `/${endpointId}`), await shop.call('GET')];
  expect(shown.body.secrets.map(({ fingerprint }: Json) => fingerprint)).toEqual(
    [rotated.body.secret, secret].map((text) => createHash('sha256').update(text).digest('hex').slice(0, 12)),
  );
  expect(list.body.data).toMatchObject([{ endpointId, undelivered: 0, status: 'active' }]);
  for (const { text } of [tested, changed, disabled, enabled, shown, list]) expect(text).not.toContain('whsec_');
});

test('two changes of an endpoint at the same time are both kept', async () => {
  const shop = await newShop();
  const { endpointId } = await newEndpoint(shop, { events: ['all'] });
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const locking = service.db.transaction(async (tx) => {
    await tx.run(lockProject, [shop.id]);
    await held;
  });
  const changes = [{ url: urlOf('/both') }, { events: ['invoice.paid'] }].map((change) =>
    shop.call('PATCH', `/${endpointId}`, change),
  );
  await eventually(
    () =>
      runSql(service, `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
    (waiting) => waiting.length === 2,
  );
  release();
  await locking;
  expect((await Promise.all(changes)).map(({ status }) => status)).toEqual([200, 200]);
  const { body } = await shop.call('GET', `/${endpointId}`);
  expect(body).toMatchObject({ url: urlOf('/both'), eventTypes: ['invoice.paid'] });
});

const lockProject = unlistedStatement('', {}, 'select from projects where id = $1 for no key update');

test('the log says which key did it, from where and in which request, and of a URL no more than its origin', async () => {
  const shop = await newShop();
  const { endpointId } = await newEndpoint(shop, { url: `${urlOf('/hook')}?token=canary`, events: ['all'] });
  const moved = await shop.call('PATCH', `/${endpointId}`, { url: urlOf('/moved') });
  const rows = await runSql(
    service,
    'select actor_kind, actor_id, acted_by, origin, request_id, action, detail::text from operator_actions where subject = $1 order by seq',
    [endpointId],
  );
  const by = { actor_kind: 'key', actor_id: shop.keyUuid, acted_by: 'further', origin: '127.0.0.1' };
  expect(rows).toMatchObject([
    { ...by, action: 'webhook.added' },
    { ...by, action: 'webhook.changed', request_id: moved.headers['x-request-id'] },
  ]);
  expect(JSON.stringify(rows)).not.toMatch(/canary|whsec_/);
});

test('why the operator disabled an endpoint a key reads, and not who it was', async () => {
  const shop = await newShop();
  for (const [reason, told] of [
    ['', 'by hand'],
    ['moves house', 'moves house (by hand)'],
    ['by the way (by mistake)', 'by hand'],
  ] as const) {
    const { endpointId } = await newEndpoint(shop);
    const { disabledReason } = await disableEndpoint.run(
      { db: service.db, now: () => unixMs(service.clock.now()) },
      commandActor('Olga (by night)'),
      { endpointId, reason },
    );
    expect(disabledReason).toContain('by Olga (by night)');
    const replies = [
      await shop.call('GET', `/${endpointId}`),
      await shop.call('GET'),
      await shop.call('POST', `/${endpointId}/disable`),
      await shop.call('POST', `/${endpointId}/enable`),
    ];
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 409, 200]);
    expect(replies[0]?.body.disabledReason).toBe(told);
    expect(replies[2]?.body.detail).toBe(`${endpointId} is already disabled: ${told}.`.replace(/^w/, 'W'));
    expect(replies[3]?.body.disabledReason).toBe(told);
    for (const { text } of replies) expect(text).not.toContain('Olga');
  }
});

test('an endpoint of another project, one that is not there and no id at all are answered alike, whatever is asked', async () => {
  const [own, other] = [await newShop(), await newShop()];
  const { endpointId } = await newEndpoint(other);
  const routes = [
    ...[['GET', ''] as const, ['PATCH', '', { description: 'x' }] as const, ['POST', '/rotate'] as const],
    ...[['POST', '/test'] as const, ['POST', '/enable'] as const, ['POST', '/disable'] as const],
  ];
  for (const [method, path, body] of routes) {
    const replies = [];
    for (const id of [endpointId, NOT_THERE, 'whe_x', '-']) {
      const reply = await own.call(method, `/${id}${path}`, body);
      expectProblem(reply, 404, 'ENDPOINT_NOT_FOUND');
      replies.push({ ...reply.body, requestId: null });
    }
    expect(new Set(replies.map((each) => JSON.stringify(each))).size).toBe(1);
  }
  expect((await own.call('GET')).body).toEqual({ data: [] });
  expect((await other.call('GET', `/${endpointId}`)).body).toMatchObject({ status: 'active', description: '' });
});

test('of creations that come at the same time with one URL, one makes an endpoint and the others name it', async () => {
  const shop = await newShop();
  const body = { url: urlOf('/same') };
  const replies = await Promise.all(Array.from({ length: 6 }, () => shop.call('POST', '', body)));
  const [made, ...more] = replies.filter(({ status }) => status === 201);
  expect(more).toEqual([]);
  for (const reply of replies.filter((each) => each !== made)) {
    expect(expectProblem(reply, 409, 'ENDPOINT_CONFLICT').detail).toContain(
      `PATCH /v1/webhook-endpoints/${made?.body.endpointId}`,
    );
  }
});

const WRONG: [method: string, path: string, body: object | string, code: string, fields: string[] | null][] = [
  ['POST', '', '', 'INVALID_REQUEST', ['url']],
  ['POST', '', '{', 'INVALID_JSON', null],
  ['POST', '', '[]', 'INVALID_REQUEST', null],
  ['POST', '', {}, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 1, events: 'all', odd: true }, 'INVALID_REQUEST', ['events', 'odd', 'url']],
  ['POST', '', { url: 'https://shop.example/', projectId: 'prj_x' }, 'INVALID_REQUEST', ['projectId']],
  ['POST', '', '{"url":"https://a.example/","url":"https://b.example/"}', 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 'shop.example' }, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: `https://shop.example/${'x'.repeat(2048)}` }, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 'https://shop.example/?whsec_x' }, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 'https://10.0.0.1/' }, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 'https://169.254.169.254/latest' }, 'INVALID_REQUEST', ['url']],
  ['POST', '', { url: 'https://shop.example/', events: ['invoice.pad'] }, 'INVALID_REQUEST', ['events']],
  ['POST', '', { url: 'https://shop.example/', description: 'a\nb' }, 'INVALID_REQUEST', ['description']],
  ['POST', '', { url: 'https://shop.example/', description: 'x'.repeat(201) }, 'INVALID_REQUEST', ['description']],
  ['POST', '', { url: 'https://shop.example/', secret: 'whsec_c2hvcnQ=' }, 'INVALID_REQUEST', ['secret']],
  ['POST', '?odd=1', { url: 'https://shop.example/' }, 'INVALID_REQUEST', ['odd']],
  ['GET', '?projectId=prj_x', '', 'INVALID_REQUEST', ['projectId']],
  ['PATCH', '/:id', {}, 'INVALID_REQUEST', null],
  ['PATCH', '/:id', { url: null }, 'INVALID_REQUEST', ['url']],
  ['PATCH', '/:id', { endpointId: NOT_THERE }, 'INVALID_REQUEST', ['endpointId']],
  ['POST', '/:id/rotate', { overlap: '31d' }, 'INVALID_REQUEST', ['overlap']],
  ['POST', '/:id/rotate', { isKeyLost: true }, 'INVALID_REQUEST', ['isKeyLost']],
  ['POST', '/:id/disable', { reason: 'x'.repeat(201) }, 'INVALID_REQUEST', ['reason']],
  ['POST', '/:id/test', '"x"', 'INVALID_REQUEST', null],
];

describe('what is wrong is named, and changes nothing', () => {
  test.each(WRONG)('%s %s with %j', async (method, path, body, code, fields) => {
    const shop = await newShop();
    const { endpointId } = await newEndpoint(shop);
    const before = (await shop.call('GET')).text;
    const reply = await shop.call(method, path.replace(':id', endpointId), method === 'GET' ? undefined : body);
    const problem = expectProblem(reply, 400, code);
    expect(problem.errors === undefined ? null : fieldsOf(problem)).toEqual(fields);
    expect(reply.text).not.toMatch(/quittance webhook|--[a-z]/);
    expect((await shop.call('GET')).text).toBe(before);
  });

  test('a body of another type, and one that is too large', async () => {
    const shop = await newShop();
    expectProblem(await shop.call('POST', '', '{}', { 'content-type': 'text/plain' }), 415, 'UNSUPPORTED_MEDIA_TYPE');
    expectProblem(
      await shop.call('PATCH', `/${NOT_THERE}`, `{"url":"${'x'.repeat(17_000)}"}`),
      413,
      'PAYLOAD_TOO_LARGE',
    );
  });
});

test('where this machine is no target, an endpoint of a test project is https and public as others are', async () => {
  const strict = await startTestService({ config: { webhooks: { localTargets: false, retentionDays: 90 } } });
  try {
    const shop = await newShop(strict);
    for (const url of ['http://shop.example/', 'https://127.0.0.1/', 'https://[::1]/', 'https://localhost/'])
      expect(fieldsOf(expectProblem(await shop.call('POST', '', { url }), 400, 'INVALID_REQUEST'))).toEqual(['url']);
    expect((await shop.call('POST', '', { url: 'https://shop.example/' })).status).toBe(201);
  } finally {
    await strict.stop();
  }
});

test('a process without the master key lists and disables endpoints, and makes no secret', async () => {
  const usdt = parseAddress(service.devnet.usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  const { url, stop } = await startService({
    config: {
      ...{
        host: '127.0.0.1',
        port: 0,
        publicUrl: null,
        databasePoolSize: 2,
        roles: ['api'],
        metrics: null,
        trustProxy: [],
      },
      networks: { devnet: { nodes: [unlimitedNode(service.devnet.url)], usdt: usdt.account, agreement: 1 } },
      rateLimit: { perSecond: 100, burst: 200 },
      webhooks: { localTargets: true, retentionDays: 90 },
    },
    ...{ keyRing: null, connection: service.connectionString, log: createLogger({ level: 'silent' }) },
  });
  onTestFinished(stop);
  const shop = await newShop({ ...service, url: url ?? '' });
  const { endpointId } = await newEndpoint({ ...shop, call: callBy(service, shop.apiKey) });
  for (const [path, body] of [['', { url: urlOf('/keyless') }] as const, [`/${endpointId}/rotate`, {}] as const]) {
    const problem = expectProblem(await shop.call('POST', path, body), 503, 'UNAVAILABLE');
    expect(problem.detail).toContain('QUITTANCE_MASTER_KEY');
  }
  expect((await shop.call('POST', `/${endpointId}/disable`)).status).toBe(200);
  expect((await shop.call('GET')).body.data).toMatchObject([{ endpointId, status: 'disabled' }]);
});

test('a project has 100 endpoints that are enabled, and one more takes the place of one that is disabled', async () => {
  const shop = await newShop();
  const { endpointId } = await newEndpoint(shop);
  for (let n = 1; n < 100; n += 1) {
    await insertWebhookEndpoint(service.db, { id: randomUUID(), projectId: shop.id, url: `https://shop.example/${n}` });
  }
  const body = { url: urlOf('/more') };
  expect(expectProblem(await shop.call('POST', '', body), 409, 'ENDPOINT_CONFLICT').detail).toContain('100 endpoints');
  await shop.call('POST', `/${endpointId}/disable`);
  expect((await shop.call('POST', '', body)).status).toBe(201);
  expectProblem(await shop.call('POST', `/${endpointId}/enable`), 409, 'ENDPOINT_CONFLICT');
});

test('a key asks for endpoints a tenth as often at once as for others, which do not wait for that', async () => {
  const usual = await startTestService({ config: { rateLimit: { perSecond: 100, burst: 200 } } });
  const shop = await newShop(usual);
  const replies = await Promise.all(Array.from({ length: 30 }, () => shop.call('GET')));
  const [limited] = replies.filter(({ status }) => status === 429);
  expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(20);
  if (limited === undefined) throw new Error('nothing was refused');
  expectProblem(limited, 429, 'RATE_LIMITED');
  expect(limited.headers['retry-after']).toBe('1');
  expect((await post(usual, { project: shop, body: order() })).status).toBe(201);
  await usual.stop();
});

test('a key that was revoked a moment ago changes nothing', async () => {
  const shop = await newShop();
  const { endpointId } = await newEndpoint(shop);
  await runSql(service, 'update api_keys set revoked_at = now() where id = $1', [shop.keyUuid]);
  expectProblem(await shop.call('POST', `/${endpointId}/disable`), 401, 'UNAUTHENTICATED');
  const [row] = await runSql(service, 'select disabled_at from webhook_endpoints where project_id = $1', [shop.id]);
  expect(row).toEqual({ disabled_at: null });
});

test('an adapter is the operator’s: a key changes nothing about it, and neither disables nor enables it', async () => {
  const shop = await newShop();
  const { endpointId } = await newEndpoint(shop);
  const trigger = 'webhook_endpoints_keep_what_they_are';
  await runSql(service, `alter table webhook_endpoints disable trigger ${trigger}`);
  await runSql(
    service,
    `update webhook_endpoints set adapter = 'epusdt', currency = 'CNY', rate_micro = 7200000, rate_min_micro = 7000000, rate_max_micro = 8000000
     where project_id = $1`,
    [shop.id],
  );
  await runSql(service, `alter table webhook_endpoints enable trigger ${trigger}`);
  for (const path of ['disable', 'enable', 'rotate', 'test']) {
    expectProblem(await shop.call('POST', `/${endpointId}/${path}`), 409, 'ENDPOINT_CONFLICT');
  }
  expect((await shop.call('GET', `/${endpointId}`)).body).toMatchObject({ status: 'active' });
});
