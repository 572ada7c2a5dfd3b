import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  createTestProject,
  eventually,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { ask, created, expectProblem, fieldsOf, get, indistinct, type Reply } from './ask.ts';
import { addKey } from './keys.ts';
import { command, keepUp, pay } from './webhook-shop.ts';

const FEED = '/v1/events';
/** The number of events in the large project: more than a page of the largest size, and a multiple of neither 50 nor 100. */
const MANY = 205;

let service: TestService;
/** A project with `MANY` events, to which no test adds any. */
let large: TestProject;
beforeAll(async () => {
  service = await startTestService({ config: { roles: ['api', 'watcher'] } });
  large = await createTestProject(service.db);
  await unmatched(large, MANY);
});
beforeEach(() => keepUp(service));
afterAll(() => service.stop());

/** Sends transfers that match no invoice. Each is an event, in a project without endpoints. */
async function unmatched(project: TestProject, count: number): Promise<void> {
  const [to = ''] = project.addresses;
  const before = (await wholeFeed(project)).length;
  const { multisendContract, usdtContract: token } = service.devnet;
  for (let left = count; left > 0; left -= 100) {
    const transfers = Array.from({ length: Math.min(left, 100) }, (_, index) => ({
      to,
      amountMicro: BigInt(index + 1),
    }));
    await service.payer.multisend({ multisendContract, token, transfers });
  }
  service.devnet.mineUntilSolid();
  await eventually(
    async () => (await wholeFeed(project)).length,
    (length) => length === before + count,
  );
}

const idsOf = (reply: Reply): string[] => reply.body.data.map(({ id }: Json) => id);

async function page(project: TestProject, query: string): Promise<Reply> {
  const reply = await get(service, FEED + query, project);
  expect(reply.status, reply.text).toBe(200);
  expect(Object.keys(reply.body)).toEqual(['data', 'hasMore', 'latest']);
  return reply;
}

/** Returns the ids of the feed after an event, read as the documentation says: page by page, while there are more. */
async function wholeFeed(project: TestProject, limit = 100, after?: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = after; ; cursor = ids.at(-1)) {
    const reply = await page(project, `?limit=${limit}${cursor === undefined ? '' : `&after=${cursor}`}`);
    ids.push(...idsOf(reply));
    if (reply.body.hasMore) expect(reply.body.data).toHaveLength(limit);
    else return ids;
  }
}

/** Writes a `ping` for an endpoint where nothing listens, and returns its id. */
async function ping(endpointId: string): Promise<string> {
  return (await command(service, ['webhook', 'test', endpointId], 1)).eventId;
}

async function deafEndpoint(project: TestProject): Promise<string> {
  const endpoint = { projectId: project.id, url: 'http://127.0.0.1:1/', secret: createWebhookSecret(randomBytes) };
  return encodeId('whe', (await addTestEndpoint(service.db, endpoint)).id);
}

describe('pages', () => {
  test('of a project without events: no data, no more, and no latest', async () => {
    const { body } = await page(await createTestProject(service.db), '');
    expect(body).toEqual({ data: [], hasMore: false, latest: null });
  });

  test('hold 50 events unless told otherwise, from the first on', async () => {
    const all = await wholeFeed(large);
    expect(all).toHaveLength(MANY);
    const first = await page(large, '');
    expect(idsOf(first)).toEqual(all.slice(0, 50));
    expect(first.body).toMatchObject({ hasMore: true, latest: all.at(-1) });
    const next = await page(large, `?after=${all[49]}`);
    expect(idsOf(next)).toEqual(all.slice(50, 100));
  });

  test.each([1, 41, 99, 100])('of %i join to the whole feed: each event once, in one order', async (limit) => {
    const all = await wholeFeed(large);
    // 205 = 5 × 41: the last page is full, and still says that there are no more.
    const after = limit === 1 ? all[MANY - 6] : undefined;
    expect(await wholeFeed(large, limit, after)).toEqual(limit === 1 ? all.slice(-5) : all);
    expect(new Set(all).size).toBe(MANY);
  });

  test('after the last event are empty, and go on with what happens next', async () => {
    const project = await createTestProject(service.db);
    await unmatched(project, 2);
    const [first, last] = await wholeFeed(project);
    const end = await page(project, `?after=${last}`);
    expect(end.body).toEqual({ data: [], hasMore: false, latest: last });
    keepUp(service);
    await unmatched(project, 1);
    const { body } = await page(project, `?after=${last}`);
    expect(body.data).toHaveLength(1);
    expect(body).toMatchObject({ hasMore: false, latest: body.data[0].id });
    expect(await wholeFeed(project)).toEqual([first, last, body.data[0].id]);
  });

  test('show an event by the same bytes, wherever it stands in them and whenever they are read', async () => {
    const all = await page(large, '?limit=100');
    const ids = idsOf(all);
    const bytes: string[] = [];
    for (const [index, id] of ids.slice(0, 5).entries()) {
      const { text } = await page(large, index === 0 ? '?limit=1' : `?limit=1&after=${ids[index - 1]}`);
      const match = /^\{"data":\[(.*)\],"hasMore":true,"latest":"evt_\w+"\}$/su.exec(text);
      expect(JSON.parse(match?.[1] ?? '')).toMatchObject({ id });
      bytes.push(match?.[1] ?? '');
    }
    expect(all.text.startsWith(`{"data":[${bytes.join(',')},`)).toBe(true);
    expect(all.headers['content-type']).toMatch(/^application\/json(;|$)/);
  });
});

describe('what stands in the feed', () => {
  test('every change of an invoice in the order of its sequence without a gap, also if no endpoint took it', async () => {
    const project = await createTestProject(service.db);
    const at = { ...service, project };
    const [a, b] = [await created(service, { project }), await created(service, { project })];
    for (const { invoiceId } of [a, b]) await pay(service, project, invoiceId);
    service.devnet.mine();
    for (const { invoiceId } of [a, b]) await untilStatus(at, invoiceId, 'CONFIRMING');
    service.devnet.fork({ depth: 1, keepTransactions: false });
    for (const { invoiceId } of [a, b]) await untilStatus(at, invoiceId, 'PENDING');
    for (const { invoiceId } of [a, b, a]) await pay(service, project, invoiceId);
    service.devnet.mineUntilSolid();
    const events: Json[] = await eventually(
      async () => (await page(project, '')).body.data,
      (all) => all.filter(({ type }: Json) => /paid|duplicate/.test(type)).length === 3,
    );
    for (const { invoiceId } of [a, b]) {
      const own = events.filter(({ type, data }) => type.startsWith('invoice.') && data.invoiceId === invoiceId);
      expect(own).toHaveLength(4);
      expect(own.map(({ sequence }) => sequence)).toEqual(own.map((_, index) => index + 1));
      expect(own.map(({ type }) => type).slice(0, 2)).toEqual(['invoice.confirming', 'invoice.pending']);
    }
    for (const event of events) {
      expect(Object.keys(event)).toEqual(['id', 'type', 'timestamp', 'projectId', 'network', 'sequence', 'data']);
      expect(event).toMatchObject({ projectId: project.projectId, network: 'TRON' });
    }
  });

  test('a ping', async () => {
    const project = await createTestProject(service.db);
    const endpointId = await deafEndpoint(project);
    const eventId = await ping(endpointId);
    const { body } = await page(project, '');
    expect(body).toMatchObject({ data: [{ id: eventId, type: 'ping', data: { endpointId } }], latest: eventId });
  });

  test('no event of another project, on the same network or another', async () => {
    const [own, live] = [
      await createTestProject(service.db),
      await createTestProject(service.db, { network: 'mainnet' }),
    ];
    const mine = await ping(await deafEndpoint(own));
    const theirs = await ping(await deafEndpoint(live));
    expect(await wholeFeed(own)).toEqual([mine]);
    expect(await wholeFeed(live)).toEqual([theirs]);
    expect(await wholeFeed(large)).toHaveLength(MANY);
  });

  test('nothing that appears behind a reader, however many write at once', async () => {
    const project = await createTestProject(service.db);
    const endpointId = await deafEndpoint(project);
    const { multisendContract, usdtContract: token } = service.devnet;
    const [to = ''] = project.addresses;
    for (let i = 0; i < 4; i++) {
      const transfers = Array.from({ length: 5 }, (_, index) => ({ to, amountMicro: BigInt(index + 1) }));
      await service.payer.multisend({ multisendContract, token, transfers });
      service.devnet.mine();
    }
    let isOver = false;
    const read: string[] = [];
    const reader = (async () => {
      for (;;) {
        const isLast = isOver;
        read.push(...(await wholeFeed(project, 3, read.at(-1))));
        if (isLast) return;
      }
    })();
    const pings = Array.from({ length: 12 }, () => ping(endpointId));
    service.devnet.mineUntilSolid();
    await Promise.all(pings);
    const all = await eventually(
      () => wholeFeed(project),
      ({ length }) => length === 32,
    );
    isOver = true;
    await reader;
    expect(read).toEqual(all);
  });
});

describe('a request that is wrong', () => {
  test('has one and the same answer for a cursor that is malformed, unknown, or of another project', async () => {
    const own = await createTestProject(service.db);
    const mine = await ping(await deafEndpoint(own));
    const live = await createTestProject(service.db, { network: 'mainnet' });
    const [foreign = ''] = await wholeFeed(large);
    const reference = await get(service, `${FEED}?after=${foreign}`, own);
    expect(fieldsOf(expectProblem(reference, 400, 'INVALID_REQUEST'))).toEqual(['after']);
    const cursors = [
      await ping(await deafEndpoint(live)),
      encodeId('evt', uuidV7(Date.now(), randomBytes(10))),
      ...['', 'x', 'evt_', 'latest', '0', '-1', '1', 'null', '%00', '%F0%28', 'x'.repeat(5000)],
      ...[mine.slice(4), mine.slice(0, -1), `${mine}0`, `${mine}%20`, `%20${mine}`, mine.toUpperCase()],
      ...[mine.replace('evt_', 'whe_'), `evt_8${mine.slice(5)}`, `${mine},${mine}`],
      own.projectId,
    ];
    for (const cursor of cursors) {
      const reply = await get(service, `${FEED}?after=${cursor}`, own);
      expect(indistinct(reply), cursor).toEqual(indistinct(reference));
    }
    expect((await page(own, `?after=${mine}`)).body.data).toEqual([]);
  });

  test.each(['0', '101', '-1', '+5', '', ' ', '1.0', '1e1', '0x1', '01', '٥', 'ten', '99999999999999999999', '5,5'])(
    'is one with the limit %j',
    async (limit) => {
      const reply = await get(service, `${FEED}?limit=${encodeURIComponent(limit)}`);
      expect(fieldsOf(expectProblem(reply, 400, 'INVALID_REQUEST'))).toEqual(['limit']);
    },
  );

  test.each(['before=x', 'Limit=5', 'limit[]=5', 'cursor=', 'type=ping', 'expand=payment'])(
    'is one with the unknown parameter %s',
    async (query) => {
      const reply = await get(service, `${FEED}?limit=5&${query}`);
      expect(fieldsOf(expectProblem(reply, 400, 'INVALID_REQUEST'))).toEqual([query.split('=')[0]]);
    },
  );

  test('is one with a parameter that is repeated', async () => {
    const [id = ''] = await wholeFeed(large);
    for (const query of [`after=${id}&after=${id}`, 'limit=5&limit=5']) {
      const reply = await get(service, `${FEED}?${query}`, large);
      expect(fieldsOf(expectProblem(reply, 400, 'INVALID_REQUEST'))).toEqual([query.split('=')[0]]);
    }
  });

  test('is told all that is wrong at once', async () => {
    const reply = await get(service, `${FEED}?after=x&limit=0&typo=1`, large);
    expect(fieldsOf(expectProblem(reply, 400, 'INVALID_REQUEST'))).toEqual(['after', 'limit', 'typo']);
  });
});

describe('authentication', () => {
  test('is that of every route: missing, malformed, unknown and revoked are one and the same 401', async () => {
    const project = await createTestProject(service.db);
    const { keyId, apiKey: revoked } = await addKey(service.db, project.id);
    await revokeApiKey(service.db, keyId, unixMs(service.clock.now()));
    const unknown = formatApiKey('devnet', uuidV7(Date.now(), randomBytes(10)), randomBytes(32));
    const reference = await ask(`${service.url}/v1/invoices/none`);
    expectProblem(reference, 401, 'UNAUTHENTICATED');
    for (const key of [null, '', 'x', `${project.apiKey}0`, unknown, revoked]) {
      const reply = await ask(service.url + FEED, { headers: { 'x-api-key': key } });
      expect(indistinct(reply), String(key)).toEqual(indistinct(reference));
    }
  });

  test('comes before the parameters, and after route and method', async () => {
    expectProblem(await ask(`${service.url}${FEED}?after=x&limit=0&typo=1`), 401, 'UNAUTHENTICATED');
    expectProblem(await ask(service.url + FEED, { method: 'DELETE' }), 405, 'METHOD_NOT_ALLOWED');
    expectProblem(await ask(`${service.url}${FEED}/evt_x`), 404, 'ROUTE_NOT_FOUND');
  });
});

describe('methods', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('%s is 405 with Allow, as on other routes', async (method) => {
    const headers = { 'x-api-key': large.apiKey };
    const reply = await ask(service.url + FEED, { method, headers });
    const other = await ask(`${service.url}/v1/invoices/none`, { method, headers });
    expectProblem(reply, 405, 'METHOD_NOT_ALLOWED');
    expect({ status: reply.status, allow: reply.headers['allow'] }).toEqual({
      status: other.status,
      allow: other.headers['allow'],
    });
  });

  test('HEAD has the status and the headers of GET, and no body', async () => {
    const headers = { 'x-api-key': large.apiKey };
    for (const query of ['', '?limit=0']) {
      const [head, whole] = [
        await ask(service.url + FEED + query, { method: 'HEAD', headers }),
        await ask(service.url + FEED + query, { headers }),
      ];
      expect(head.text).toBe('');
      expect(head.status).toBe(whole.status);
      expect(head.headers['content-type']).toBe(whole.headers['content-type']);
      expect(head.headers['content-length']).toBe(whole.headers['content-length']);
    }
  });
});

test('each read counts for the rate limit of its key like any other', async () => {
  const limited = await startTestService({ config: { roles: ['api'], rateLimit: { perSecond: 0.5, burst: 3 } } });
  onTestFinished(limited.stop);
  limited.clock.freeze();
  expect((await get(limited, FEED)).status).toBe(200);
  // Refused reads count too.
  expect((await get(limited, `${FEED}?limit=0`)).status).toBe(400);
  expect((await get(limited, '/v1/invoices/none')).status).toBe(404);
  const reply = await get(limited, FEED);
  expectProblem(reply, 429, 'RATE_LIMITED');
  expect(reply.headers['retry-after']).toMatch(/^[12]$/);
  expect(Object.keys(reply.headers)).toEqual(expect.arrayContaining(['ratelimit', 'ratelimit-policy']));
  limited.clock.advance(2000);
  expect((await get(limited, FEED)).status).toBe(200);
});
