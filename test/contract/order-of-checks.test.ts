import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';
import { ask, expectProblem, type HeaderValue, order, post, sendRaw } from './ask.ts';
import { addKey } from './keys.ts';

let service: TestService;
let project: TestProject;
/** Another key of the project, with only the scope `read`. */
let reader: string;
/** A project whose key has used up its requests. */
let spent: TestProject;
const BURST = 8;
beforeAll(async () => {
  // So slow that no bucket refills during the tests.
  service = await startTestService({ config: { rateLimit: { perSecond: 0.001, burst: BURST } } });
});
beforeEach(async () => {
  // Refills the bucket of failed authentications.
  service.clock.advance(10_000);
  project = await createTestProject(service.db);
  ({ apiKey: reader } = await addKey(service.db, project.id, { scopes: ['read'] }));
  spent = await createTestProject(service.db);
  for (let i = 0; i < BURST; i++) {
    await ask(`${service.url}/v1/invoices/none`, { headers: { 'x-api-key': spent.apiKey } });
  }
});
afterAll(() => service.stop());

type Parts = { path: string; method: string; headers: Record<string, HeaderValue>; body: string };

/** One way to fail each check, in the contract's order: route, method, authentication, rate limit, type and size, key, body. */
const CHECKS: { code: string; status: number; break(parts: Parts): void }[] = [
  {
    code: 'ROUTE_NOT_FOUND',
    status: 404,
    break: (parts) => {
      parts.path = '/v1/invoicez';
    },
  },
  {
    code: 'METHOD_NOT_ALLOWED',
    status: 405,
    break: (parts) => {
      parts.method = 'PUT';
    },
  },
  {
    code: 'UNAUTHENTICATED',
    status: 401,
    break: ({ headers }) => {
      headers['x-api-key'] = 'qt_test_wrong';
    },
  },
  {
    code: 'RATE_LIMITED',
    status: 429,
    break: ({ headers }) => {
      // A request without a valid key has no bucket to use up.
      if (headers['x-api-key'] !== 'qt_test_wrong') headers['x-api-key'] = spent.apiKey;
    },
  },
  {
    code: 'INSUFFICIENT_SCOPE',
    status: 403,
    break: ({ headers }) => {
      if (headers['x-api-key'] === project.apiKey) headers['x-api-key'] = reader;
    },
  },
  {
    code: 'UNSUPPORTED_MEDIA_TYPE',
    status: 415,
    break: ({ headers }) => {
      headers['content-type'] = 'text/plain';
    },
  },
  {
    code: 'PAYLOAD_TOO_LARGE',
    status: 413,
    break: (parts) => {
      parts.body = parts.body + ' '.repeat(16 * 1024);
    },
  },
  {
    code: 'IDEMPOTENCY_KEY_REQUIRED',
    status: 400,
    break: ({ headers }) => {
      headers['idempotency-key'] = null;
    },
  },
  {
    code: 'INVALID_JSON',
    status: 400,
    break: (parts) => {
      parts.body = `{${parts.body}`;
    },
  },
];

function correct(): Parts {
  const headers = {
    'x-api-key': project.apiKey,
    'idempotency-key': randomUUID(),
    'content-type': 'application/json',
  };
  return { path: '/v1/invoices', method: 'POST', headers, body: JSON.stringify(order()) };
}

const pairs = CHECKS.flatMap((earlier, index) =>
  CHECKS.slice(index + 1).map((later) => [earlier.code, later.code, earlier, later] as const),
);

test.each(pairs)('a request that breaks %s and %s gets the first', async (_earlier, _later, earlier, later) => {
  const parts = correct();
  earlier.break(parts);
  later.break(parts);
  const { path, ...request } = parts;
  expectProblem(await ask(service.url + path, request), earlier.status, earlier.code);
});

test('a request that breaks everything at once gets the checks in order, one by one as each is mended', async () => {
  const broken = new Set(CHECKS);
  for (const check of CHECKS) {
    const parts = correct();
    for (const each of CHECKS) if (broken.has(each)) each.break(parts);
    const { path, ...request } = parts;
    expectProblem(await ask(service.url + path, request), check.status, check.code);
    broken.delete(check);
  }
});

describe('within the checks of the body', () => {
  test('INVALID_REQUEST comes before UNSUPPORTED_ASSET and UNSUPPORTED_NETWORK', async () => {
    const body = order({ amount: 'x', asset: 'USDC', network: 'BTC' });
    expectProblem(await post(service, { project, body }), 400, 'INVALID_REQUEST');
  });

  test('UNSUPPORTED_ASSET comes before IDEMPOTENCY_CONFLICT', async () => {
    const [key, body] = [randomUUID(), order()];
    expect((await post(service, { project, body, headers: { 'idempotency-key': key } })).status).toBe(201);
    const reply = await post(service, {
      project,
      body: { ...body, asset: 'USDC' },
      headers: { 'idempotency-key': key },
    });
    expectProblem(reply, 422, 'UNSUPPORTED_ASSET');
  });

  test('INVALID_REQUEST comes before a replay', async () => {
    const [key, body] = [randomUUID(), order()];
    expect((await post(service, { project, body, headers: { 'idempotency-key': key } })).status).toBe(201);
    const reply = await post(service, { project, body: { ...body, extra: 1 }, headers: { 'idempotency-key': key } });
    expectProblem(reply, 400, 'INVALID_REQUEST');
  });
});

test('an unauthenticated request of any size is answered without its body having been read', async () => {
  const head = [
    'Host: localhost',
    'Connection: close',
    'Content-Type: application/json',
    'Content-Length: 1000000000',
  ].join('\r\n');
  const reply = await sendRaw(service.url, `POST /v1/invoices HTTP/1.1\r\n${head}\r\n\r\n`);
  expectProblem(reply, 401, 'UNAUTHENTICATED');
});

test('a body that is announced as too large is refused before it is sent', async () => {
  const head = [
    'Host: localhost',
    'Connection: close',
    `X-Api-Key: ${project.apiKey}`,
    'Idempotency-Key: announced',
    'Content-Type: application/json',
    'Content-Length: 16385',
  ].join('\r\n');
  expectProblem(await sendRaw(service.url, `POST /v1/invoices HTTP/1.1\r\n${head}\r\n\r\n`), 413, 'PAYLOAD_TOO_LARGE');
});
