import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import Schema from 'typebox/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVENT_TYPES } from '../../src/core/domain/event.ts';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { requestClaim } from '../../src/core/store/ledger/checkout.ts';
import { recordEvents } from '../../src/core/store/outbox/events.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { resolveTransfers } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { expandReferences } from '../support/expand-references.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  createTestProject,
  eventually,
  type Json,
  payableOf,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { ask, created, expectProblem, fieldsOf, get, indistinct, order } from './ask.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';

let service: TestService;
let other: TestProject;
beforeAll(async () => {
  service = await startTestService();
  other = await createTestProject(service.db);
});
afterAll(() => service.stop());

/** Writes events of a project as the service does, and returns their API ids, oldest first. */
async function addEvents(projectId: string, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, (_, index) => {
    const id = uuidV7(Date.now(), randomBytes(10));
    // The spaces differ from JSON.stringify's, so re-serialising a body would change it.
    const body = `{"id": "${encodeId('evt', id)}",  "type": "ping", "note": "Grüße ₮ \\u0000 \u2028 𝄞 ${index}"}`;
    return { id, projectId, type: 'ping' as const, invoiceId: null, transferId: null, sequence: 1, body };
  });
  await service.db.transaction((tx) => recordEvents(tx, 'devnet', events, unixMs(Date.now())));
  return events.map(({ id }) => encodeId('evt', id));
}

async function storedBodies(projectId: string): Promise<string[]> {
  const rows = await runSql(service, 'select body from events where project_id = $1 order by position', [projectId]);
  return rows.map(({ body }) => String(body));
}

const idsOf = (reply: { body: Json }) => reply.body.data.map(({ id }: Json) => id);

describe('GET /v1/events', () => {
  test('of a project without events is an empty page', async () => {
    const project = await createTestProject(service.db);
    const reply = await get(service, '/v1/events', project);
    expect(reply).toMatchObject({ status: 200, text: '{"data":[],"hasMore":false,"latest":null}' });
  });

  test('holds the stored bytes, oldest first, and says whether there are more and which event is the newest', async () => {
    const project = await createTestProject(service.db);
    const ids = await addEvents(project.id, 60);
    const bodies = await storedBodies(project.id);
    const page = (from: number, to: number) =>
      `{"data":[${bodies.slice(from, to).join(',')}],"hasMore":${to < 60},"latest":"${ids[59]}"}`;
    const first = await get(service, '/v1/events', project);
    expect(first.status).toBe(200);
    expect(first.text).toBe(page(0, 50));
    expect(first.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(first.headers['cache-control']).toBe('no-store');
    expect((await get(service, `/v1/events?after=${ids[49]}`, project)).text).toBe(page(50, 60));
    expect((await get(service, `/v1/events?after=${ids[9]}&limit=1`, project)).text).toBe(page(10, 11));
    expect((await get(service, '/v1/events?limit=60', project)).text).toBe(page(0, 60));
    expect((await get(service, '/v1/events?limit=59', project)).text).toBe(page(0, 59));
    const end = await get(service, `/v1/events?after=${ids[59]}&limit=100`, project);
    expect(end.text).toBe(`{"data":[],"hasMore":false,"latest":"${ids[59]}"}`);
    const [next] = await addEvents(project.id, 1);
    expect(idsOf(await get(service, `/v1/events?after=${ids[59]}`, project))).toEqual([next]);
  });

  test('a page of 100 events of the largest size is answered', async () => {
    const project = await createTestProject(service.db);
    await runSql(
      service,
      `insert into events (id, project_id, network, type, sequence, body)
       select gen_random_uuid(), $1, 'devnet', 'ping', 1, '"' || repeat('x', 19997) || '"' from generate_series(1, 101)`,
      [project.id],
    );
    const { status, text, body } = await get(service, '/v1/events?limit=100', project);
    expect({ status, length: text.length, hasMore: body.hasMore }).toEqual({
      status: 200,
      length: 100 * 20_000 + '{"data":[],"hasMore":true,"latest":"evt_01k2m9t0b3e8zr6v5x4c7d1f2g"}'.length - 1,
      hasMore: true,
    });
  });

  test('holds no event of another project', async () => {
    const [mine] = await addEvents(service.project.id, 1);
    const theirs = await addEvents(other.id, 3);
    expect(idsOf(await get(service, '/v1/events', other))).toEqual(theirs);
    expect(idsOf(await get(service, '/v1/events'))).toContain(mine);
    expect(idsOf(await get(service, '/v1/events'))).not.toContain(theirs[0]);
  });

  test('a cursor that is malformed, unknown or another project’s is one and the same 400', async () => {
    const [mine = ''] = await addEvents(service.project.id, 1);
    const [theirs = ''] = await addEvents(other.id, 1);
    const unknown = encodeId('evt', uuidV7(Date.now(), randomBytes(10)));
    const reference = await get(service, `/v1/events?after=${unknown}`);
    expect(expectProblem(reference, 400, 'INVALID_REQUEST').errors).toMatchObject([{ field: 'after' }]);
    const nil = encodeId('evt', '00000000-0000-0000-0000-000000000000');
    const malformed = ['', 'x', 'null', '0', mine.slice(0, -1), `${mine}0`, mine.toUpperCase(), `inv_${mine.slice(4)}`];
    const hostile = [
      '%00',
      '%ff',
      `${mine}%20`,
      `%20${mine}`,
      "'%20or%20''='",
      '𝄞',
      'x'.repeat(9000),
      `${mine},${mine}`,
    ];
    for (const after of [theirs, nil, ...malformed, ...hostile]) {
      const reply = await get(service, `/v1/events?after=${after}`);
      expect(indistinct(reply), after).toEqual(indistinct(reference));
    }
  });

  test('a limit is a whole number from 1 to 100, in plain digits', async () => {
    for (const limit of [
      '0',
      '101',
      '1000',
      '-1',
      '1.5',
      '',
      '1e1',
      '0x10',
      '٣',
      '%2B5',
      '05',
      '5%20',
      '%205',
      'all',
    ]) {
      const problem = expectProblem(await get(service, `/v1/events?limit=${limit}`), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem), limit).toEqual(['limit']);
    }
    for (const limit of ['1', '9', '10', '99', '100']) {
      expect((await get(service, `/v1/events?limit=${limit}`)).status, limit).toBe(200);
    }
  });

  test('all that is wrong is told at once; unknown and repeated parameters are refused', async () => {
    const both = expectProblem(await get(service, '/v1/events?after=x&limit=0'), 400, 'INVALID_REQUEST');
    expect(fieldsOf(both)).toEqual(['after', 'limit']);
    for (const query of ['afer=x', 'limit=5&limit=5', 'type=invoice.paid', 'After=x']) {
      const problem = expectProblem(await get(service, `/v1/events?${query}`), 400, 'INVALID_REQUEST');
      expect(fieldsOf(problem)).toEqual([query.split('=')[0]]);
    }
  });

  test('needs the same authentication, also of a key that was revoked a moment ago, whatever else is wrong', async () => {
    expectProblem(await ask(`${service.url}/v1/events`), 401, 'UNAUTHENTICATED');
    expectProblem(await ask(`${service.url}/v1/events?limit=0`), 401, 'UNAUTHENTICATED');
    for (const query of ['', '?after=x', '?limit=0', '?typo=1']) {
      const { keyId, apiKey } = await addKey(service.db, service.project.id);
      const headers = { 'x-api-key': apiKey };
      expect((await ask(`${service.url}/v1/events`, { headers })).status).toBe(200);
      await revokeApiKey(service.db, keyId, unixMs(Date.now()));
      expectProblem(await ask(`${service.url}/v1/events${query}`, { headers }), 401, 'UNAUTHENTICATED');
    }
  });

  test('HEAD answers as GET without the body; another method is 405', async () => {
    const headers = { 'x-api-key': service.project.apiKey };
    const head = await ask(`${service.url}/v1/events`, { method: 'HEAD', headers });
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: '' });
    const posted = await ask(`${service.url}/v1/events`, { method: 'POST', headers });
    expectProblem(posted, 405, 'METHOD_NOT_ALLOWED');
    expect(posted.headers['allow']).toBe('GET, HEAD, OPTIONS');
  });
});

describe('what really happens', () => {
  let project: TestProject;
  const delivered = new Map<string, Buffer>();
  const receiver = createServer(async (request, response) => {
    delivered.set(String(request.headers['webhook-id']), Buffer.concat(await request.toArray()));
    response.writeHead(204).end();
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    project = await createTestProject(service.db);
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await addTestEndpoint(service.db, { projectId: project.id, url, secret: createWebhookSecret(randomBytes) });
  });
  afterAll(() => {
    receiver.close();
    receiver.closeAllConnections();
  });

  test('stands in the feed in the order of each invoice, byte for byte as stored and as delivered, and fits its schema', async () => {
    const at = { ...service, project };
    const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
    const contracts = { usdt, fakeUsdt, multisend };
    const paid = await created(service, { project, body: order({ externalId: 'Grüße ₮ \u2028 "𝄞" \\ </b>' }) });
    const expired = await created(service, { project });
    const invoice = await payableOf(at, paid.invoiceId);
    await payScenario(service.payer, { scenario: 'exact', contracts, invoice });
    service.devnet.mine();
    await untilStatus(at, paid.invoiceId, 'CONFIRMING');
    service.devnet.fork({ depth: 1, keepTransactions: false });
    await untilStatus(at, paid.invoiceId, 'PENDING');
    await payScenario(service.payer, { scenario: 'twice', contracts, invoice });
    const { address: to } = await payableOf(at, expired.invoiceId);
    const other = await service.payer.transfer({ contract: usdt, to, amountMicro: 21_234_560n });
    service.devnet.mine();
    await untilStatus(at, paid.invoiceId, 'CONFIRMING');
    service.devnet.mineUntilSolid();
    await untilStatus(at, paid.invoiceId, 'PAID');
    service.devnet.mine(1, { timestampMs: Math.ceil(Date.parse(expired.expiresAt) / 3000) * 3000 + 3000 });
    await untilStatus(at, expired.invoiceId, 'EXPIRED');

    const money = await eventually(
      () => get(service, '/v1/transfers', project),
      ({ body }) => body.data.length === 2,
    );
    await eventually(
      () => storedBodies(project.id),
      (all) => all.length === 7,
    );
    await requestClaim(service.db, new URL(expired.checkoutUrl).pathname.slice('/c/'.length), other);
    await eventually(
      () => storedBodies(project.id),
      (all) => all.length === 8,
    );
    const transferIds = money.body.data.map(({ transferId }: Json) => decodeId('trf', transferId) ?? '');
    const deps = {
      db: service.db,
      now: () => unixMs(service.clock.now()),
      random: (size: number) => randomBytes(size),
    };
    await resolveTransfers.run(deps, commandActor('test'), {
      ...{ transferIds, resolution: 'fulfilled-manually', note: 'of the desk', invoice: expired.externalId },
    });
    const bodies = await eventually(
      () => storedBodies(project.id),
      (all) => all.length === 10,
    );
    const reply = await get(service, '/v1/events', project);
    const latest = JSON.parse(bodies.at(-1) ?? '').id;
    expect(reply.text).toBe(`{"data":[${bodies.join(',')}],"hasMore":false,"latest":"${latest}"}`);
    await eventually(
      () => delivered.size,
      (size) => size === bodies.length,
    );
    for (const body of bodies) expect(delivered.get(JSON.parse(body).id)?.toString()).toBe(body);

    const types = reply.body.data.map(({ type }: Json) => type);
    // Events that only an operator or a receiver causes. refunds.test.ts and test/webhooks cover them.
    const byOthers = ['ping', 'endpoint.disabled', 'transfer.refunded'];
    expect(new Set(types)).toEqual(new Set(EVENT_TYPES.filter((type) => !byOthers.includes(type))));
    const ofPaid = reply.body.data.filter(({ data }: Json) => data.externalId === paid.externalId);
    expect(ofPaid.map(({ type, sequence }: Json) => [sequence, type])).toEqual([
      [1, 'invoice.confirming'],
      [2, 'invoice.pending'],
      [3, 'invoice.confirming'],
      [4, 'invoice.paid'],
    ]);

    const { webhooks, paths } = expandReferences((await ask(`${service.url}/openapi.json`)).body);
    for (const event of reply.body.data) {
      const { schema } = webhooks[event.type].post.requestBody.content['application/json'];
      expect(Schema.Errors(schema, event)[1], event.type).toEqual([]);
      expect(Schema.Check(schema, { ...event, type: 'invoice.other' })).toBe(false);
    }
    const page = paths['/v1/events'].get.responses[200].content['application/json'].schema;
    expect(Schema.Errors(page, reply.body)[1]).toEqual([]);
  });
});

describe('GET /openapi.json', () => {
  test('describes the feed, and a webhook with its headers for every type of event', async () => {
    const { webhooks, paths } = expandReferences((await ask(`${service.url}/openapi.json`)).body);
    const feed = paths['/v1/events'].get;
    expect(feed.operationId).toBe('listEvents');
    expect(feed.parameters.map(({ name }: Json) => name)).toEqual(['after', 'limit', 'types', 'wait']);
    expect(Object.keys(feed.responses)).toEqual(['200', '400', '401', '403', '429', '500', '503']);
    expect(Object.keys(webhooks).sort()).toEqual(EVENT_TYPES.toSorted());
    for (const [type, { post }] of Object.entries<Json>(webhooks)) {
      expect(post.requestBody.content['application/json'].schema.properties.type.const).toBe(type);
      expect(post.parameters.map(({ name }: Json) => name)).toEqual([
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
        'webhook-protocol',
      ]);
    }
    const { schema } = feed.responses[400].content['application/problem+json'];
    expect(schema.properties.code.enum).toContain('INVALID_REQUEST');
  });

  test('is sound for a linter, and each operation has an id and one tag', async () => {
    const document = (await ask(`${service.url}/openapi.json`)).body;
    const config = await createConfig({
      extends: ['recommended'],
      // The server is on this machine.
      rules: {
        'no-server-example.com': 'off',
        'operation-operationId': 'error',
        'operation-singular-tag': 'error',
        'operation-tag-defined': 'error',
      },
    });
    const found = await lintFromString({ source: JSON.stringify(document), config });
    expect(found.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([]);
    for (const { post } of Object.values<Json>(document.webhooks)) {
      expect(post).toMatchObject({ operationId: expect.stringMatching(/^on[A-Z]/), tags: ['webhooks'], security: [] });
    }
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(['EventPage', 'Invoice', 'InvoicePaidEvent', 'Problem']),
    );
  });

  test('answers say which headers they have', async () => {
    const { paths } = (await ask(`${service.url}/openapi.json`)).body;
    const headersOf = (status: number) => Object.keys(paths['/v1/invoices'].post.responses[status].headers);
    expect(headersOf(201)).toEqual(['X-Request-Id', 'Location', 'Idempotent-Replayed']);
    expect(headersOf(429)).toEqual(['X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'Retry-After']);
    expect(headersOf(503)).toEqual(['X-Request-Id', 'Retry-After']);
  });
});
