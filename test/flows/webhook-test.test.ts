import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { quittanceWebhook } from '../../packages/sdk/src/middleware/express.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { runCli } from '../cli/run-cli.ts';
import { createCertificate } from '../support/create-certificate.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { findSteadyPort } from '../support/steady-port.ts';

const database = await createTestDatabase();
const env = {
  DATABASE_URL: database.connectionString,
  QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64'),
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
};
const projectId = uuidV7(Date.now(), randomBytes(10));

type Handler = (request: IncomingMessage & { body?: unknown }, response: ServerResponse) => unknown;

/** The handlers by path, to which tests add theirs. */
const routes = new Map<string, Handler>();
const answer: Handler = (request, response) => routes.get(request.url ?? '')?.(request, response);
const server = createServer(answer);
const tlsServer = createTlsServer(createCertificate(['localhost']), answer);
let [origin, tlsOrigin] = ['', ''];

beforeAll(async () => {
  const db = openDatabase({
    connection: database.connection,
    poolSize: 1,
    applicationName: 'webhook test',
    onError: () => undefined,
  });
  const project = {
    id: projectId,
    name: 'Shop',
    network: 'nile',
    maxSurchargeMicro: 10_000n,
    invoiceLifetimeMs: 1_800_000,
  };
  await insertProject(db, { ...project, network: 'nile' });
  await db.close();
  for (const each of [server, tlsServer]) await once(each.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  tlsOrigin = `https://localhost:${(tlsServer.address() as AddressInfo).port}`;
});

afterAll(async () => {
  for (const each of [server, tlsServer]) {
    each.close();
    each.closeAllConnections();
  }
  await database.drop();
});

let routeCount = 0;
/** Creates an endpoint whose receiver is created with its secret. */
async function newEndpoint(createReceiver: (secret: string) => Handler, at = origin) {
  routeCount += 1;
  const path = `/hook/${routeCount}`;
  const args = ['webhook', 'add', '--project', encodeId('prj', projectId), '--url', `${at}${path}`, '--json'];
  const { json } = await runCli(args, { env });
  routes.set(path, createReceiver(json.secret));
  return { id: json.endpointId as string, path, secret: json.secret as string };
}

async function testOf(endpoint: { id: string }) {
  const { code, json, stderr } = await runCli(['webhook', 'test', endpoint.id, '--json'], { env });
  expect(stderr).toBe('');
  return { code, ...json };
}

const codesOf = ({ diagnosis }: { diagnosis: { code: string }[] }) => diagnosis.map(({ code }) => code);
const accept = () => undefined;

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  return Buffer.concat(await request.toArray());
}

test('a good receiver gets a signed ping, once, and it stands in the feed', async () => {
  const received: unknown[] = [];
  const endpoint = await newEndpoint((secret) => async (request, response) => {
    const body = await bodyOf(request);
    received.push(new Webhook(secret).verify(body, request.headers as Record<string, string>));
    response.writeHead(200).end('fine');
  });
  const result = await testOf(endpoint);
  expect(result).toMatchObject({
    code: 0,
    isDelivered: true,
    status: 200,
    error: null,
    answer: 'fine',
    dns: 'not used',
    tls: 'not used',
    diagnosis: [],
  });
  const ping = { id: result.eventId, type: 'ping', sequence: 1, data: { endpointId: endpoint.id } };
  expect(received).toMatchObject([ping]);
  const { json: shown } = await runCli(['deliveries', 'show', result.eventId, '--json'], { env });
  expect(shown.deliveries).toMatchObject([
    { endpointId: endpoint.id, status: 'delivered', attempts: [{ attempt: 1, status: 200, answer: 'fine' }] },
  ]);
  const { rows } = await withClient(database.owner, (client) =>
    client.query('select max(position)::int as last, count(*)::int as count from events'),
  );
  expect(rows[0].last).toBe(rows[0].count);
});

test('a page for logging in that answers 200 fails the test, and is quoted', async () => {
  const page = '<!DOCTYPE html><html><head><title>Log in</title></head><body>Who are you?</body></html>';
  const endpoint = await newEndpoint(() => async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
  });
  const result = await testOf(endpoint);
  expect(result).toMatchObject({ code: 1, isDelivered: false, status: 200, answer: page, webPage: 'Log in' });
  expect(codesOf(result)).toEqual(['web-page']);
  const { stdout } = await runCli(['webhook', 'test', endpoint.id], { env });
  expect(stdout).toContain('<title>Log in</title>');
});

test('a receiver in PHP, which calls its "ok" text/html, passes the test', async () => {
  const endpoint = await newEndpoint(() => async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('ok');
  });
  expect(await testOf(endpoint)).toMatchObject({ code: 0, isDelivered: true, webPage: null });
});

test('a disabled endpoint can be tested before it is enabled', async () => {
  const endpoint = await newEndpoint((secret) => quittanceWebhook({ secret }, accept));
  await runCli(['webhook', 'disable', endpoint.id], { env });
  const { code, stderr } = await runCli(['webhook', 'test', endpoint.id], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining(`webhook enable ${endpoint.id}`) });
});

test('a wrong secret is proven', async () => {
  const endpoint = await newEndpoint(() => quittanceWebhook({ secret: createWebhookSecret(randomBytes) }, accept));
  const result = await testOf(endpoint);
  expect(result).toMatchObject({ code: 1, isDelivered: false, status: 400, diagnosis: [{ certainty: 'proven' }] });
  expect(codesOf(result)).toEqual(['wrong-secret']);
});

test('a receiver that was forgotten in a rotation is known by its secret', async () => {
  const endpoint = await newEndpoint((secret) => quittanceWebhook({ secret }, accept));
  await runCli(['webhook', 'rotate', endpoint.id, '--overlap', '1h'], { env });
  expect(await testOf(endpoint)).toMatchObject({ code: 0, diagnosis: [] });
  await runCli(['webhook', 'rotate', endpoint.id, '--overlap', '0'], { env });
  expect(codesOf(await testOf(endpoint))).toEqual(['secret-ended']);
});

test('a body that a parser wrote again is proven, and how', async () => {
  const endpoint = await newEndpoint((secret) => {
    const verify = quittanceWebhook({ secret }, accept);
    return async (request, response) => {
      const parsed: unknown = JSON.parse((await bodyOf(request)).toString());
      request.body = Buffer.from(JSON.stringify(parsed, null, 2));
      return verify(request, response);
    };
  });
  const result = await testOf(endpoint);
  expect(codesOf(result)).toEqual(['body-reserialised']);
  expect(result.diagnosis[0].problem).toContain('indented by two spaces');
  // The record proves it too.
  const { json: shown } = await runCli(['deliveries', 'show', result.eventId, '--json'], { env });
  expect(shown.deliveries).toMatchObject([{ status: 'dead', diagnosis: result.diagnosis }]);
});

test('a body that was parsed before is proven', async () => {
  const endpoint = await newEndpoint((secret) => {
    const verify = quittanceWebhook({ secret }, accept);
    return async (request, response) => {
      request.body = JSON.parse((await bodyOf(request)).toString());
      return verify(request, response);
    };
  });
  expect(codesOf(await testOf(endpoint))).toEqual(['body-not-raw']);
});

test.each([
  [-400, 'behind'],
  [400, 'ahead'],
])('a clock that is off by %i s is proven', async (seconds, direction) => {
  const now = () => Date.now() + seconds * 1000;
  const endpoint = await newEndpoint((secret) => quittanceWebhook({ secret, now }, accept));
  const result = await testOf(endpoint);
  expect(codesOf(result)).toEqual(['clock']);
  expect(result.diagnosis[0]).toMatchObject({ certainty: 'proven' });
  // A busy machine's answer arrives late, which makes its clock seem further ahead or less behind.
  const [, offBy = ''] = new RegExp(`(\\d+) s ${direction}`).exec(result.diagnosis[0].problem) ?? [];
  expect(Math.abs(Number(offBy) - 400)).toBeLessThanOrEqual(15);
});

test('of a receiver without the SDK the Date header tells of the clock', async () => {
  const endpoint = await newEndpoint(() => (_request, response) => {
    response.setHeader('date', new Date(Date.now() - 1_000_000).toUTCString());
    response.writeHead(401).end('{"error":"unauthorized","token":"abcdef"}');
  });
  const result = await testOf(endpoint);
  expect(codesOf(result)).toEqual(['clock', 'unauthorized']);
  expect(result.answer).toContain('unauthorized');
  expect(result.answer).not.toContain('abcdef');
});

test('what goes wrong before an answer is told by its place', async () => {
  const tls = await newEndpoint(() => (_request, response) => response.end(), tlsOrigin);
  expect(await testOf(tls)).toMatchObject({
    code: 1,
    status: null,
    dns: 'ok',
    tls: 'failed',
    diagnosis: [{ code: 'certificate-self-signed', certainty: 'proven' }],
  });
  const plain = await newEndpoint(() => accept, origin.replace('http:', 'https:'));
  expect(codesOf(await testOf(plain))).toEqual(['not-tls']);
  const cut = await newEndpoint(() => (request) => request.socket.destroy());
  expect(codesOf(await testOf(cut))).toEqual(['connection-lost']);
  const refused = await newEndpoint(() => accept, `http://127.0.0.1:${await findSteadyPort()}`);
  expect(codesOf(await testOf(refused))).toEqual(['refused']);
  // Another process of this installation may be stricter.
  const strict = { ...env, QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'deny' };
  const { code, json } = await runCli(['webhook', 'test', refused.id, '--json'], { env: strict });
  expect({ code, diagnosis: codesOf(json) }).toEqual({ code: 1, diagnosis: ['target-refused'] });
});

test('a test counts for nothing at the endpoint, and shows an answer so that it does nothing to a terminal', async () => {
  const endpoint = await newEndpoint(() => (_request, response) => {
    response.writeHead(500).end('\u001b[2J\u202eboom');
  });
  const { code, stdout } = await runCli(['webhook', 'test', endpoint.id], { env });
  expect(code).toBe(1);
  expect(stdout).toContain('"[2Jboom"');
  expect(stdout).toContain('1. server-error, likely');
  const { json } = await runCli(['webhook', 'list', '--project', encodeId('prj', projectId), '--json'], { env });
  const listed = json.data.find((each: { endpointId: string }) => each.endpointId === endpoint.id);
  expect(listed).toMatchObject({ status: 'active', undelivered: 0, lastAttempt: { status: 500 } });
});
