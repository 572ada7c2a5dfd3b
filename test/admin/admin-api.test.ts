import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { request } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import { formatAdminKey } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { ACTIONS, type Rule } from '../../src/faces/operator/actions.ts';
import { commandActor, ROLES, type Role } from '../../src/faces/operator/actor.ts';
import type { Operation } from '../../src/faces/operator/operation.ts';
import { createAdminKeyOperation } from '../../src/faces/operator/subjects/admin-keys.ts';
import { OPERATIONS } from '../../src/faces/operator/wire/operations.ts';
import { createLedger } from '../cli/explain-ledger.ts';
import { openGoldenShop } from '../cli/golden-shop.ts';
import { runCli } from '../cli/run-cli.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { createTestProject, eventually, type Json } from '../support/service.ts';
import { newAdminKey, startConsoleOver } from './console-service.ts';

const NOBODYS = '01h455vb4pex5vsknk084sn02q';
/** Networks in a service's format, for code that only needs their names. */
const networks = { devnet: { nodes: [], usdt: 'ab'.repeat(20), agreement: 1 } } as never;

type Sent = { method?: string; headers?: Record<string, string | string[]>; body?: string };
type Reply = { status: number; headers: Record<string, unknown>; text: string; body: Json };

async function ask(url: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<Reply> {
  const answer = await request(url, { method: method as 'GET', headers, body: body ?? null });
  const text = await answer.body.text();
  const json = String(answer.headers['content-type']).includes('json');
  return { status: answer.statusCode, headers: answer.headers, text, body: json ? JSON.parse(text) : null };
}

const bearing = (key: string) => ({ authorization: `Bearer ${key}` });

/** Calls an operation; absent members of its path are `-`. */
function run(
  url: string,
  key: string,
  { method, path }: Operation,
  values: Record<string, string> = {},
  input: object = {},
) {
  const filled = path.replace(/:(\w+)/g, (_, name: string) => values[name] ?? '-');
  const body = method === 'GET' ? {} : { body: JSON.stringify(input) };
  const headers = { ...bearing(key), ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) };
  return ask(`${url}/admin/v1${filled}`, { method, headers, ...body });
}

const operationOf = (action: string) => {
  const found = OPERATIONS.find((each) => each.action === action);
  if (found === undefined) throw new Error(`there is no operation ${action}`);
  return found;
};

describe('the table role × action', () => {
  let url: string;
  let keys: Record<Role | 'scoped', string>;
  // One process serves all cells, because a start takes longer than all of them.
  beforeAll(async () => {
    const ends: (() => Promise<void>)[] = [];
    const onEnd = (end: () => Promise<void>) => void ends.unshift(end);
    const database = await createTestDatabase();
    onEnd(() => database.drop());
    const db = openTestDatabase(database);
    onEnd(() => db.close());
    const { projectId } = await createTestProject(db);
    ({ url } = await startConsoleOver(database.connectionString, { networks, onEnd }));
    const deps = { db, now: () => unixMs(Date.now()), random: (bytes: number) => randomBytes(bytes) };
    const key = async (role: Role, projects?: string[]) => {
      const wanted = createAdminKeyOperation.read(
        { name: role, role, projects, expires: undefined, allowedIps: undefined },
        deps.now(),
      );
      return (await createAdminKeyOperation.run(deps as never, commandActor('test'), wanted)).adminKey;
    };
    keys = {
      ...{ viewer: await key('viewer'), operator: await key('operator'), owner: await key('owner') },
      scoped: await key('owner', [projectId]),
    };
    return async () => {
      for (const end of ends) await end();
    };
  });

  const cells = OPERATIONS.flatMap((operation) => ROLES.map((role) => [role, operation.action, operation] as const));
  test.each(cells)('%s: %s is answered as the table says', async (role, action, operation) => {
    const rule: Rule = ACTIONS[action];
    const may = ROLES.indexOf(role) >= ROLES.indexOf(rule.role);
    const { status, body } = await run(url, keys[role], operation);
    expect(status === 403).toBe(!may);
    expect([200, 400, 403, 404, 409]).toContain(status);
    if (!may) expect(body).toMatchObject({ code: 'FORBIDDEN', detail: expect.stringContaining(rule.role) });
  });

  test.each(OPERATIONS.map((operation) => [operation.action, operation] as const))(
    'an owner of some projects: %s, unless it concerns more than they',
    async (action, operation) => {
      const { status } = await run(url, keys.scoped, operation);
      const rule: Rule = ACTIONS[action];
      expect(status === 403).toBe(rule.wide === true);
    },
  );
});

test('an unknown, wrong, expired or revoked key, and one used from elsewhere, get one and the same answer', async () => {
  const ledger = await createLedger();
  await ledger.addProject();
  const clock = { now: () => Date.now() + 3_600_000 };
  const { url } = await startConsoleOver(ledger.env.DATABASE_URL, { clock });
  const good = await newAdminKey(ledger.env, 'owner');
  const expired = await newAdminKey(ledger.env, 'owner', '--expires', '30m');
  const elsewhere = await newAdminKey(ledger.env, 'owner', '--allow-ip', '192.0.2.1');
  const here = await newAdminKey(ledger.env, 'owner', '--allow-ip', '127.0.0.0/8');
  const revoked = await newAdminKey(ledger.env, 'owner');
  await runCli(['admin-key', 'revoke', revoked.adminKeyId], { env: ledger.env });
  const unknown = formatAdminKey(uuidV7(Date.now(), randomBytes(10)), randomBytes(32));
  const wrong = formatAdminKey(idOf(good.adminKeyId), randomBytes(32));
  const asked = (headers: Record<string, string | string[]>) => ask(`${url}/admin/v1/projects`, { headers });
  expect((await asked(bearing(good.adminKey))).status).toBe(200);
  expect((await asked(bearing(here.adminKey))).status).toBe(200);
  const refused = [expired.adminKey, elsewhere.adminKey, revoked.adminKey, unknown, wrong, 'qa_1', `${good.adminKey}x`];
  const headers = [...refused.map(bearing), {}, { authorization: good.adminKey }, { 'x-api-key': good.adminKey }];
  const answers = await Promise.all(headers.map(asked));
  const shown = answers.map(({ status, body }) => ({ status, ...body, requestId: '' }));
  expect(shown.every(({ status }) => status === 401)).toBe(true);
  expect(new Set(shown.map((each) => JSON.stringify(each))).size).toBe(1);
  expect(answers[0]?.text).not.toContain('qa_1');
});

test('a key that is revoked while its request arrives creates nothing', async () => {
  const ledger = await createLedger();
  const { port } = await startConsoleOver(ledger.env.DATABASE_URL);
  const { adminKey, adminKeyId } = await newAdminKey(ledger.env, 'owner');
  const body = JSON.stringify({ name: 'a second key', role: 'owner' });
  const headers = { ...bearing(adminKey), 'content-type': 'application/json', 'content-length': body.length };
  const sent = http.request({ host: '127.0.0.1', port, path: '/admin/v1/admin-keys', method: 'POST', headers });
  sent.flushHeaders();
  const list = async () => JSON.parse((await runCli(['admin-key', 'list', '--json'], { env: ledger.env })).stdout);
  // The server has seen the key, and waits for the body.
  await eventually(list, ({ data: [key] }) => key.lastUsedAt !== null);
  await runCli(['admin-key', 'revoke', adminKeyId], { env: ledger.env });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [http.IncomingMessage];
  answer.resume();
  expect(answer.statusCode).toBe(401);
  expect((await list()).data).toHaveLength(1);
});

function idOf(adminKeyId: string): string {
  const key = adminKeyId.slice('adm_'.length);
  const hex = [...key].reduce(
    (value, letter) => value * 32n + BigInt('0123456789abcdefghjkmnpqrstvwxyz'.indexOf(letter)),
    0n,
  );
  const text = hex.toString(16).padStart(32, '0');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

test('wrong keys of one network are limited, and so is a key that asks without end', async () => {
  const ledger = await createLedger();
  await ledger.addProject();
  const frozen = Date.now() + 1000;
  const { url } = await startConsoleOver(ledger.env.DATABASE_URL, { clock: { now: () => frozen } });
  const { adminKey } = await newAdminKey(ledger.env, 'viewer');
  const statuses = async (key: string, count: number) => {
    const answers = await Promise.all(
      Array.from({ length: count }, () => ask(`${url}/admin/v1/webhooks`, { headers: bearing(key) })),
    );
    return answers.map(({ status }) => status);
  };
  // Far fewer at once than the limit for wrong keys.
  const served: number[] = [];
  while (served.length < 105) served.push(...(await statuses(adminKey, 5)));
  expect(served.filter((status) => status === 200)).toHaveLength(100);
  expect(served.slice(100)).toEqual([429, 429, 429, 429, 429]);
  const wrong = await statuses('qa_wrong', 30);
  expect(wrong.filter((status) => status === 401)).toHaveLength(20);
  expect(wrong.filter((status) => status === 429)).toHaveLength(10);
});

test('a key that was used says when, to the minute, and what it did stands in the audit log under its name', async () => {
  const ledger = await createLedger();
  const { projectId } = await ledger.addProject();
  const { url } = await startConsoleOver(ledger.env.DATABASE_URL);
  const { adminKey, adminKeyId } = await newAdminKey(ledger.env, 'owner');
  const made = await run(url, adminKey, operationOf('createKey'), {}, { projectId, name: 'shop' });
  expect(made).toMatchObject({ status: 200, body: { apiKey: expect.stringMatching(/^qt_test_/) } });
  const listed = await run(url, adminKey, operationOf('listAdminKeys'));
  expect(listed.body.data[0]).toMatchObject({ adminKeyId, lastUsedAt: expect.any(String), status: 'active' });
  expect(listed.text).not.toContain(adminKey.slice(-40));
  const { body } = await run(url, adminKey, operationOf('listAudit'));
  expect(body.data[0]).toMatchObject({
    ...{ action: 'key.created', origin: '127.0.0.1', requestId: made.headers['x-request-id'] },
    actor: { kind: 'admin', name: 'a owner', id: idOf(adminKeyId) },
  });
});

test('what belongs to a project that the key may not see is answered as what is not there', async () => {
  const shop = await openGoldenShop();
  const { url } = await startConsoleOver(shop.ledger.env.DATABASE_URL, { networks });
  const { env } = shop.ledger;
  const { adminKey } = await newAdminKey(env, 'owner', '--projects', shop.other.projectId);
  const trf = encodeId('trf', shop.strays.short.id);
  const [prj, whe] = [shop.shop.projectId, encodeId('whe', shop.endpoints.good)];
  const [evt, key] = [encodeId('evt', shop.paid.event.id), encodeId('key', shop.key)];
  const inv = encodeId('inv', shop.paid.invoice.id);
  const asked: [action: string, own: string, values: Record<string, string>, input?: object][] = [
    ['showProject', prj, { projectId: prj }],
    ['updateProject', prj, { projectId: prj }, { name: 'Mine' }],
    ['createKey', prj, {}, { projectId: prj }],
    ['revokeKey', key, { keyId: key }],
    ['addEndpoint', prj, {}, { projectId: prj, url: 'https://shop.example/' }],
    ['updateEndpoint', whe, { endpointId: whe }, { description: 'x' }],
    ['rotateSecret', whe, { endpointId: whe }],
    ['testEndpoint', whe, { endpointId: whe }],
    ['enableEndpoint', whe, { endpointId: whe }],
    ['disableEndpoint', whe, { endpointId: whe }],
    ['showDelivery', evt, { eventId: evt }],
    ['replayEvents', evt, {}, { events: [evt], isDryRun: true }],
    ['replayPeriod', whe, { endpoint: whe }, { from: '2026-09-01', status: ['all'], isDryRun: true }],
    ['showTransfers', trf, { reference: trf }],
    ['resolveTransfers', trf, {}, { transfers: [trf], resolution: 'kept' }],
    ['retireAddresses', prj, {}, { projectId: prj, entries: [{ text: shop.tail.address, place: 'it' }] }],
    [
      'addAddresses',
      prj,
      {},
      { projectId: prj, entries: [{ text: shop.tail.address, place: 'it' }], isChecked: false },
    ],
  ];
  for (const [action, own, values, input = {}] of asked) {
    const unknown = own.replace(/_.*/, `_${NOBODYS}`);
    const swap = <Part extends object>(part: Part): Part => JSON.parse(JSON.stringify(part).replaceAll(own, unknown));
    const [foreign, none] = await Promise.all([
      run(url, adminKey, operationOf(action), values, input),
      run(url, adminKey, operationOf(action), swap(values), swap(input)),
    ]);
    const shown = JSON.stringify({ ...foreign.body, requestId: '' }).replaceAll(own, unknown);
    expect({ action, status: foreign.status }).toEqual({ action, status: 404 });
    expect({ action, shown }).toEqual({ action, shown: JSON.stringify({ ...none.body, requestId: '' }) });
  }
  for (const text of [inv, 'paid', shop.tail.address]) {
    const path = `/admin/v1/explain?text=${text}`;
    const { status, body } = await ask(`${url}${path}`, { headers: bearing(adminKey) });
    expect({ text, status, code: body.code }).toEqual({ text, status: 404, code: 'NOT_FOUND' });
  }
  for (const query of [`endpoint=${whe}`, `event=${evt}`, `projectId=${prj}`]) {
    const { status } = await ask(`${url}/admin/v1/deliveries?${query}`, { headers: bearing(adminKey) });
    expect({ query, status }).toEqual({ query, status: 404 });
  }
  const { body } = await run(url, adminKey, operationOf('listProjects'));
  expect(body.data.map(({ projectId }: Json) => projectId)).toEqual([shop.other.projectId]);
  // An address of another project is refused without naming the project.
  const input = { entries: [{ text: shop.tail.address, place: 'it' }], isChecked: false };
  const taken = await run(url, adminKey, operationOf('addAddresses'), {}, input);
  expect(taken.status).toBe(409);
  expect(taken.text).not.toContain(prj);
});

test('wrong types, unknown and repeated members, and bodies that are no JSON are refused by name', async () => {
  const ledger = await createLedger();
  await ledger.addProject();
  const { url } = await startConsoleOver(ledger.env.DATABASE_URL);
  const { adminKey } = await newAdminKey(ledger.env, 'owner');
  const send = (path: string, body: string, headers: Record<string, string> = {}) =>
    ask(`${url}/admin/v1${path}`, {
      ...{ method: 'POST', body },
      headers: { ...bearing(adminKey), 'content-type': 'application/json', ...headers },
    });
  const wrong: [path: string, body: string, field: string | null][] = [
    ['/keys', '{"name":1}', 'name'],
    ['/keys', '{"name":null}', 'name'],
    ['/keys', '{"allowedIps":"10.0.0.1"}', 'allowedIps'],
    ['/keys', '{"allowedIps":[["10.0.0.1"]]}', 'allowedIps[0]'],
    ['/keys', '{"nam":"x"}', 'nam'],
    ['/keys', '{"name":"a","name":"b"}', 'name'],
    ['/keys', '{"__proto__":{"name":"x"},"constructor":1}', '__proto__'],
    ['/webhooks', '{}', 'url'],
    ['/webhooks/-/rotate', '{"isKeyLost":"yes"}', 'isKeyLost'],
    ['/webhooks/-/test', '{"endpointId":"whe_1"}', 'endpointId'],
    ['/admin-keys', '{"name":"x","role":"king"}', 'role'],
    ['/addresses', '{"entries":[{"text":"T"}]}', 'entries[0].place'],
    ['/addresses', '{"entries":[null]}', 'entries[0]'],
    ...['', '[]', 'null', '{', '"x"'].map((body) => ['/keys', body, null] as [string, string, null]),
  ];
  for (const [path, body, field] of wrong) {
    const answer = await send(path, body);
    expect({ path, body, status: answer.status }).toEqual({ path, body, status: 400 });
    expect(answer.body).toMatchObject({
      code: /^{?$/.test(body) ? 'INVALID_JSON' : 'INVALID_REQUEST',
      requestId: expect.stringMatching(/^req_/),
    });
    if (field !== null) expect(answer.body.errors.map((each: Json) => each.field)).toContain(field);
  }
  expect((await send('/keys', '{}', { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await send('/keys', JSON.stringify({ name: 'x'.repeat(2 ** 21) }))).status).toBe(413);
  const queries = ['limit=1&limit=2', 'odd=1', 'projectId=prj_1&projectId=prj_2'];
  for (const query of queries) {
    const answer = await ask(`${url}/admin/v1/transfers?${query}`, { headers: bearing(adminKey) });
    expect({ query, status: answer.status }).toEqual({ query, status: 400 });
  }
  expect((await ask(`${url}/admin/v1/keys`, { method: 'DELETE', headers: bearing(adminKey) })).status).toBe(405);
  expect((await ask(`${url}/admin/v1/nothing`, { headers: bearing(adminKey) })).status).toBe(404);
});

test('the console answers by its own names alone, keeps nothing in caches, and shows no payer anything', async () => {
  const ledger = await createLedger();
  await ledger.addProject();
  const { url, port } = await startConsoleOver(ledger.env.DATABASE_URL, { url: 'https://console.example.com' });
  const local = `http://127.0.0.1:${port}`;
  expect(url).toBe('https://console.example.com');
  for (const host of ['console.example.com', `localhost:${port}`, `127.0.0.1:${port}`, '[::1]:9000']) {
    expect({ host, status: (await ask(`${local}/openapi.json`, { headers: { host } })).status }).toEqual({
      host,
      status: 200,
    });
  }
  for (const host of ['evil.example', 'pay.example.com', 'console.example.com.evil.example', '192.0.2.1']) {
    const { status, body } = await ask(`${local}/admin/v1/projects`, { headers: { host } });
    expect({ host, status, code: body.code }).toEqual({ host, status: 421, code: 'MISDIRECTED' });
    expect((await ask(`${local}/nothing`, { headers: { host } })).status).toBe(421);
  }
  const { headers } = await ask(`${local}/admin/v1/projects`);
  expect(headers).toMatchObject({
    ...{ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'www-authenticate': 'Bearer' },
    'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
  });
  for (const path of ['/v1/invoices', '/c/x', '/healthz']) expect((await ask(`${local}${path}`)).status).toBe(404);
});

test('the document of the admin API has every operation, and is sound', async () => {
  const ledger = await createLedger();
  const { url } = await startConsoleOver(ledger.env.DATABASE_URL);
  const { status, body, headers } = await ask(`${url}/openapi.json`);
  expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'application/json; charset=utf-8' });
  expect(body).toMatchObject({ openapi: '3.1.0', servers: [{ url }] });
  const found = Object.entries<Json>(body.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([method, operation]) => ({ path, method, ...operation })),
  );
  expect(found.map(({ operationId }) => operationId).sort()).toEqual(OPERATIONS.map(({ action }) => action).sort());
  for (const { path, method, operationId, parameters, requestBody, responses, security, description } of found) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const named = parameters.filter((each: Json) => each.in === 'path').map(({ name }: Json) => name);
    expect(named.sort(), operationId).toEqual(inPath.sort());
    for (const parameter of parameters) expect(typeof parameter.schema, operationId).toBe('object');
    expect(requestBody === undefined, operationId).toBe(method === 'get');
    expect(Object.keys(responses), operationId).toEqual(
      expect.arrayContaining(['200', '400', '401', '403', '404', '429']),
    );
    expect(security).toEqual([{ adminKey: [] }]);
    expect(description, operationId).toContain(ACTIONS[operationId as keyof typeof ACTIONS].role);
  }
});
