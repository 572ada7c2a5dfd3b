import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES, type Scope } from '../../src/core/domain/api-key.ts';
import { createSandboxControls } from '../../src/developer/sandbox/run-sandbox.ts';
import { sandboxNotRunning } from '../../src/developer/sandbox/sandbox-file.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';
import { ask, expectProblem, order, type Reply } from './ask.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';

/** The scope that each operation needs. A new operation must be listed here. */
const NEEDED: Readonly<Record<string, Scope>> = {
  ...{ createInvoice: 'create', withdrawInvoice: 'create' },
  ...{ readInvoice: 'read', findInvoices: 'read', listTransfers: 'read' },
  listEvents: 'events',
  ...{ sandboxPay: 'create', sandboxAdvance: 'create' },
  ...{ createSandboxProject: 'create', endSandboxProject: 'create' },
  ...{ listWebhookEndpoints: 'webhooks', createWebhookEndpoint: 'webhooks', readWebhookEndpoint: 'webhooks' },
  ...{ updateWebhookEndpoint: 'webhooks', rotateWebhookSecret: 'webhooks', testWebhookEndpoint: 'webhooks' },
  ...{ enableWebhookEndpoint: 'webhooks', disableWebhookEndpoint: 'webhooks' },
};

let service: TestService;
let operations: { path: string; method: string; operationId: string; security: Json }[];
const keys: Record<string, string> = {};
beforeAll(async () => {
  const sandbox = createSandboxControls(() => sandboxNotRunning('of the test'), {
    ...{ keyRing: TEST_KEY_RING, localTargets: true },
  });
  service = await startTestService({ sandbox });
  const { paths } = (await ask(`${service.url}/openapi.json`)).body;
  operations = Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, details]) => ({ ...details, path, method: method.toUpperCase() })),
  );
  for (const scope of SCOPES) {
    keys[scope] = (await addKey(service.db, service.project.id, { scopes: [scope] })).apiKey;
  }
  keys['none'] = service.project.apiKey;
});
afterAll(() => service.stop());

/** Sends a request that is correct except for its subject. */
function send(apiKey: string, { path, method }: { path: string; method: string }): Promise<Reply> {
  const url = service.url + path.replace('{invoiceId}', 'inv_x').replace('{endpointId}', 'whe_x');
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': randomUUID() };
  return ask(url, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) });
}

test('every operation says which scope it takes, and is named here', () => {
  const said = operations.map(({ operationId, security }) => [operationId, security]);
  const needed = Object.entries(NEEDED).map(([id, scope]) => [id, [{ apiKey: [scope] }]]);
  expect(Object.fromEntries(said)).toEqual(Object.fromEntries(needed));
});

describe.each(Object.entries(NEEDED))('%s takes a key with %s', (operationId, needed) => {
  const operation = () => {
    const found = operations.find((each) => each.operationId === operationId);
    if (found === undefined) throw new Error(`there is no ${operationId}`);
    return found;
  };

  test.each(SCOPES.filter((scope) => scope !== needed))('and refuses one with %s alone', async (scope) => {
    const reply = await send(keys[scope] ?? '', operation());
    expectProblem(reply, 403, 'INSUFFICIENT_SCOPE');
    expect(reply.body.scope).toBe(needed);
    expect(reply.body.detail).toContain(`quittance key create --scopes ${scope},${needed}`);
  });

  test('and takes one that has it and nothing else', async () => {
    const { status } = await send(keys[needed] ?? '', operation());
    // This test's sandbox never runs.
    expect([200, 400, 404, ...(operationId.includes('andbox') ? [503] : [])]).toContain(status);
  });

  test('and takes one without scopes, but for webhooks', async () => {
    const { status } = await send(keys['none'] ?? '', operation());
    expect(status === 403).toBe(needed === 'webhooks');
  });
});

test('a key that only creates learns of an invoice what its creation says, and no more', async () => {
  const body = order();
  const headers = {
    'x-api-key': keys['create'] ?? '',
    'idempotency-key': randomUUID(),
    'content-type': 'application/json',
  };
  const create = (more: Record<string, unknown> = {}) =>
    ask(`${service.url}/v1/invoices`, { method: 'POST', headers, body: JSON.stringify({ ...body, ...more }) });
  const made = await create();
  expect(made.status).toBe(201);
  expect(Object.keys(made.body).sort()).toEqual(['checkoutUrl', 'expiresAt', 'externalId', 'invoiceId', 'status']);
  expect([(await create()).body, (await create({ amount: '1' })).body.invoiceId]).toEqual([
    made.body,
    made.body.invoiceId,
  ]);
  for (const path of [
    `/${made.body.invoiceId}`,
    `/${made.body.invoiceId}?expand=payment`,
    '',
    `?externalId=${body['externalId']}`,
  ]) {
    const reply = await ask(`${service.url}/v1/invoices${path}`, { headers: { 'x-api-key': keys['create'] ?? '' } });
    expectProblem(reply, 403, 'INSUFFICIENT_SCOPE');
    expect(reply.text).not.toContain(made.body.checkoutUrl);
  }
});

test('a revoked key that is still remembered is answered as unknown, not told which scope it lacks', async () => {
  const { keyId, apiKey } = await addKey(service.db, service.project.id, { scopes: ['create'] });
  const ask_ = () => ask(`${service.url}/v1/events`, { headers: { 'x-api-key': apiKey } });
  expectProblem(await ask_(), 403, 'INSUFFICIENT_SCOPE');
  await runSql(service, 'update api_keys set revoked_at = now() where id = $1', [keyId]);
  expectProblem(await ask_(), 401, 'UNAUTHENTICATED');
});

test('the database holds no scope that there is not, and no empty list', async () => {
  for (const scopes of [['admin'], [], [null], ['read', null]]) {
    const insert = addKey(service.db, service.project.id, { scopes: scopes as Scope[] });
    await expect(insert).rejects.toThrow(/api_keys_scopes_check/);
  }
});
