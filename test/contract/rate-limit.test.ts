import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';
import { ask, expectProblem, get, order, post, type Reply } from './ask.ts';
import { addKey } from './keys.ts';

const BURST = 5;
const PER_SECOND = 0.5;

let service: TestService;
let project: TestProject;
beforeAll(async () => {
  service = await startTestService({ config: { rateLimit: { perSecond: PER_SECOND, burst: BURST } } });
  // Buckets refill with time, and on a slow machine one would refill just after a test emptied it.
  service.clock.freeze();
});
beforeEach(async () => {
  project = await createTestProject(service.db);
});
afterAll(() => service.stop());

/** Uses up the bucket of a key and returns the first refusal. */
async function spend(owner: TestProject = project): Promise<Reply> {
  for (let i = 0; i < BURST; i++) expect((await get(service, '/v1/invoices/none', owner)).status).toBe(404);
  return get(service, '/v1/invoices/none', owner);
}

test('RATE_LIMITED comes with Retry-After, RateLimit and RateLimit-Policy', async () => {
  const reply = await spend();
  expectProblem(reply, 429, 'RATE_LIMITED');
  expect(reply.headers['retry-after']).toMatch(/^[1-9][0-9]*$/);
  expect(Number(reply.headers['retry-after'])).toBeLessThanOrEqual(1 / PER_SECOND);
  expect(reply.headers['ratelimit']).toMatch(/^"[a-z]+";r=0;t=[1-9][0-9]*$/);
  expect(reply.headers['ratelimit-policy']).toMatch(new RegExp(`^"[a-z]+";q=${BURST};w=[1-9][0-9]*$`));
});

test('after Retry-After a request passes', async () => {
  const { headers } = await spend();
  service.clock.advance(Number(headers['retry-after']) * 1000);
  expect((await get(service, '/v1/invoices/none', project)).status).toBe(404);
});

test('the bucket holds the burst and no more, however long one waits', async () => {
  service.clock.advance(24 * 3600 * 1000);
  expectProblem(await spend(), 429, 'RATE_LIMITED');
});

test('the bucket is per key: another key, also of the same project, is not affected', async () => {
  await spend();
  const { apiKey } = await addKey(service.db, project.id);
  expect((await get(service, '/v1/invoices/none', { ...project, apiKey })).status).toBe(404);
  expect((await get(service, '/v1/invoices/none', await createTestProject(service.db))).status).toBe(404);
});

test('all requests of a key share its bucket, also those that are refused later', async () => {
  for (let i = 0; i < BURST; i++) expect((await post(service, { project, body: '{' })).status).toBe(400);
  expectProblem(await get(service, '/v1/invoices?externalId=x', project), 429, 'RATE_LIMITED');
  expectProblem(await post(service, { project }), 429, 'RATE_LIMITED');
});

test('a request that was limited used up nothing', async () => {
  const body = order();
  const headers = { 'idempotency-key': randomUUID() };
  const limited = await spend();
  expectProblem(await post(service, { project, body, headers }), 429, 'RATE_LIMITED');
  service.clock.advance(Number(limited.headers['retry-after']) * 1000);
  const reply = await post(service, { project, body, headers });
  expect(reply.status, reply.text).toBe(201);
  expect(reply.headers['idempotent-replayed']).toBeUndefined();
});

test('health and documentation are not limited by key', async () => {
  for (const path of ['/healthz', '/readyz', '/openapi.json', '/docs']) {
    for (let i = 0; i < BURST + 2; i++) expect((await ask(service.url + path)).status).toBe(200);
  }
});

test('the document of the API is limited by client network, and nothing else with it', async () => {
  const statuses = [];
  for (let i = 0; i < 100; i++) statuses.push((await ask(`${service.url}/openapi.json`)).status);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  const limited = await ask(`${service.url}/openapi.json`);
  expectProblem(limited, 429, 'RATE_LIMITED');
  expect((await get(service, '/v1/invoices/none', project)).status).toBe(404);
  expect((await ask(`${service.url}/docs`)).status).toBe(200);
  service.clock.advance(Number(limited.headers['retry-after']) * 1000);
  expect((await ask(`${service.url}/openapi.json`)).status).toBe(200);
});

test('so is the reference, its files together', async () => {
  const paths = ['/docs', '/docs/errors', '/docs/postman.json', '/llms.txt'];
  const statuses = [];
  const goOn = service.clock.freeze();
  for (let i = 0; i < 52; i++) statuses.push((await ask(service.url + paths[i % paths.length])).status);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  const limited = await ask(`${service.url}/docs`);
  goOn();
  expectProblem(limited, 429, 'RATE_LIMITED');
  expect((await ask(`${service.url}/openapi.json`)).status).toBe(200);
  service.clock.advance(Number(limited.headers['retry-after']) * 1000);
  expect((await ask(`${service.url}/docs`)).status).toBe(200);
});

test('the default is 100 requests/s with a burst of 200', async () => {
  const { readConfig } = await import('../../src/server/config/config.ts');
  const read = readConfig({});
  expect(read).toMatchObject({ kind: 'ok', config: { rateLimit: { perSecond: 100, burst: 200 } } });
});
