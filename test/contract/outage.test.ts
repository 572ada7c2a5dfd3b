import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type Service, startService } from '../../src/server/service.ts';
import { type DatabaseLink, startDatabaseLink } from '../support/database-link.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import {
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { ask, expectNoTrace, expectProblem, order, post } from './ask.ts';
import { runSql } from './sql.ts';

describe('the database is away', () => {
  let database: TestDatabase;
  let link: DatabaseLink;
  let service: Service;
  let project: TestProject;
  let target: TestService;
  beforeAll(async () => {
    database = await createTestDatabase();
    link = await startDatabaseLink(database.connection);
    service = await startService({
      config: {
        host: '127.0.0.1',
        port: 0,
        publicUrl: 'https://pay.example',
        databasePoolSize: 4,
        roles: ['api'],
        networks: {},
        metrics: null,
        trustProxy: [],
        rateLimit: { perSecond: 1000, burst: 1000 },
        webhooks: { localTargets: false, retentionDays: 90 },
      },
      keyRing: null,
      connection: link.connection,
      log: createLogger({ level: 'silent' }),
    });
    project = await createTestProject(service.db);
    target = { url: service.url ?? '', project } as TestService;
  });
  afterEach(() => link.setMode('open'));
  afterAll(async () => {
    await service.stop();
    await link.stop();
    await database.drop();
  });

  test('503 UNAVAILABLE with Retry-After for create, read and look-up, and never a stack trace', async () => {
    expect((await post(target)).status).toBe(201);
    link.setMode('refuse');
    const paths = ['/v1/invoices/none', '/v1/invoices?externalId=x', '/v1/invoices/none?expand=payment'];
    const headers = { 'x-api-key': project.apiKey };
    const replies = [
      await post(target),
      ...(await Promise.all(paths.map((path) => ask(target.url + path, { headers })))),
    ];
    for (const reply of replies) {
      expectProblem(reply, 503, 'UNAVAILABLE');
      expect(reply.headers['retry-after']).toMatch(/^[1-9][0-9]*$/);
    }
  });

  test('GET /healthz stays 200 (the process lives), GET /readyz says 503', async () => {
    link.setMode('refuse');
    expect((await ask(`${target.url}/healthz`)).status).toBe(200);
    const ready = await ask(`${target.url}/readyz`);
    expect(ready.status).toBe(503);
    expectNoTrace(ready.text);
    expect(ready.text).not.toContain(database.connection.password);
    link.setMode('open');
    await eventually(
      () => ask(`${target.url}/readyz`),
      ({ status }) => status === 200,
    );
  });

  test('what needs no database is answered as ever', async () => {
    link.setMode('refuse');
    expectProblem(await ask(`${target.url}/nothing`), 404, 'ROUTE_NOT_FOUND');
    expectProblem(await ask(`${target.url}/v1/invoices`, { method: 'PUT' }), 405, 'METHOD_NOT_ALLOWED');
    expectProblem(await ask(`${target.url}/v1/invoices/x`), 401, 'UNAUTHENTICATED');
    expect((await ask(`${target.url}/openapi.json`)).status).toBe(200);
  });

  test('a refused request used up nothing: the retry creates, or answers what was created, once', async () => {
    const body = order();
    const headers = { 'idempotency-key': randomUUID() };
    link.setMode('refuse');
    expectProblem(await post(target, { body, headers }), 503, 'UNAVAILABLE');
    link.setMode('open');
    const reply = await eventually(
      () => post(target, { body, headers }),
      ({ status }) => status === 201,
    );
    const again = await post(target, { body, headers });
    expect(again.body).toEqual(reply.body);
    const rows = await runSql(database, 'select id from invoices where external_id = $1', [body['externalId']]);
    expect(rows).toHaveLength(1);
  });

  test('connections that are cut in the middle of 40 requests cost answers, never a second invoice', async () => {
    const orders = Array.from({ length: 40 }, () => ({ body: order(), headers: { 'idempotency-key': randomUUID() } }));
    const first = Promise.all(orders.map((each) => post(target, each)));
    link.setMode('refuse');
    link.setMode('open');
    for (const reply of await first) {
      if (reply.status !== 201) expectProblem(reply, 503, 'UNAVAILABLE');
    }
    const ids = await Promise.all(
      orders.map(async (each) => {
        const reply = await eventually(
          () => post(target, each),
          ({ status }) => status === 201,
        );
        return reply.body.invoiceId;
      }),
    );
    expect(new Set(ids).size).toBe(40);
    const externalIds = orders.map(({ body }) => body['externalId']);
    const rows = await runSql(database, 'select id from invoices where external_id = any($1)', [externalIds]);
    expect(rows).toHaveLength(40);
  });

  test('a database that accepts and never answers is 503 within seconds', async () => {
    link.setMode('hang');
    const startedMs = performance.now();
    expectProblem(await post(target), 503, 'UNAVAILABLE');
    // Before a hanging statement would time out.
    expect(performance.now() - startedMs).toBeLessThan(20_000);
  });

  test('type is made of the public URL', async () => {
    const { type } = expectProblem(await ask(`${target.url}/nothing`), 404, 'ROUTE_NOT_FOUND');
    expect(type).toMatch(/^https:\/\/pay\.example\/docs\/errors/);
  });
});

describe('the program is broken', () => {
  test('500 INTERNAL tells nothing of the inside', async () => {
    const service = await startTestService();
    try {
      await runSql(service, 'alter table invoices rename column external_id to broken');
      const reply = await post(service);
      const problem = expectProblem(reply, 500, 'INTERNAL');
      expect(reply.text).not.toMatch(/external_id|column|relation|42703/);
      expect(problem.detail).toMatch(/requestId/);
    } finally {
      await service.stop();
    }
  });
});

describe('a chain outage never stops invoice creation', () => {
  test.each(['unavailable-503', 'reset', 'hang', 'html', 'suspended-403'] as const)('nodes: %s', async (kind) => {
    const service = await startTestService();
    try {
      service.devnet.setFault({ kind });
      const reply = await post(service);
      expect(reply.status).toBe(201);
      const headers = { 'x-api-key': service.project.apiKey };
      const read = await ask(`${service.url}/v1/invoices/${reply.body.invoiceId}?expand=payment`, { headers });
      expect(read.status).toBe(200);
      expect((await ask(`${service.url}/readyz`)).status).toBe(200);
    } finally {
      await service.stop();
    }
  });

  test('nodes that are gone altogether', async () => {
    const service = await startTestService();
    try {
      await service.devnet.stop();
      expect((await post(service)).status).toBe(201);
    } finally {
      await service.stop();
    }
  });
});
