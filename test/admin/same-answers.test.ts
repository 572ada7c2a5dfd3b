import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Schema from 'typebox/schema';
import { afterEach, expect, test, vi } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { addressOf, at, txIdOf } from '../cli/explain-ledger.ts';
import { openGoldenShop } from '../cli/golden-shop.ts';
import { newDirectory, runCli } from '../cli/run-cli.ts';
import type { OpenApi } from '../fuzz/openapi.ts';
import { LOGOS } from '../support/logos.ts';
import { call, type Json } from '../support/service.ts';
import { MASTER_KEY, newAdminKey, startConsoleOver } from './console-service.ts';

afterEach(() => {
  vi.useRealTimers();
});

const NOBODYS = '01h455vb4pex5vsknk084sn02q';

/** A command, and the request that should have the same answer. */
type Case = readonly [args: readonly string[], path: string];

function casesOf({
  shop,
  other,
  paid,
  expired,
  strays,
  endpoints,
  requests,
}: Awaited<ReturnType<typeof openGoldenShop>>): Case[] {
  const { projectId } = shop;
  const inShop = ['--project', projectId];
  const [trf, evt] = [
    (one: { id: string }) => encodeId('trf', one.id),
    (one: { id: string }) => encodeId('evt', one.id),
  ];
  const bad = encodeId('whe', endpoints.bad);
  const explained = ['paid', 'late', 'orphaned', 'expired', 'waiting', 'confirming', 'exact', 'ambiguous', 'order-404'];
  return [
    ...explained.map((text): Case => [['explain', text], `/explain?text=${text}`]),
    ...[0x18, 0x20, 0x21, 0x25, 0x34, 0x55].map((tx): Case => [['explain', txIdOf(tx)], `/explain?text=${txIdOf(tx)}`]),
    ...[0xa2, 0xa3, 0xbb].map((byte): Case => [['explain', addressOf(byte)], `/explain?text=${addressOf(byte)}`]),
    [['explain', 'ambiguous', '--project', other.projectId], `/explain?text=ambiguous&projectId=${other.projectId}`],
    [['explain', 'paid', '--project', 'prj_1'], '/explain?text=paid&projectId=prj_1'],
    [['transfers', 'list'], '/transfers'],
    [['transfers', 'list', ...inShop], `/transfers?projectId=${projectId}`],
    [
      ['transfers', 'list', ...inShop, '--kind', 'all', '--all'],
      `/transfers?projectId=${projectId}&kind=all&state=all`,
    ],
    [['transfers', 'list', ...inShop, '--limit', '0'], `/transfers?projectId=${projectId}&limit=0`],
    [['transfers', 'list', ...inShop, '--kind', 'odd'], `/transfers?projectId=${projectId}&kind=odd`],
    ...[paid.transfer, strays.short, strays.foreign, strays.denied].map(
      (transfer): Case => [['transfers', 'show', trf(transfer)], `/transfers/${trf(transfer)}`],
    ),
    [['transfers', 'show', `trf_${NOBODYS}`], `/transfers/trf_${NOBODYS}`],
    [['report', ...inShop], `/reports?projectId=${projectId}`],
    [['report', ...inShop, '--from', '2026-08-01'], `/reports?projectId=${projectId}&from=2026-08-01`],
    [['report', ...inShop, '--to', 'x'], `/reports?projectId=${projectId}&to=x`],
    [['report', '--project', 'prj_1'], '/reports?projectId=prj_1'],
    [['deliveries', 'list', ...inShop], `/deliveries?projectId=${projectId}`],
    [['deliveries', 'list', ...inShop, '--status', 'failing'], `/deliveries?projectId=${projectId}&status=failing`],
    [['deliveries', 'list', '--endpoint', bad], `/deliveries?endpoint=${bad}`],
    [['deliveries', 'show', evt(expired.event)], `/events/${evt(expired.event)}`],
    [['deliveries', 'show', 'evt_1'], '/events/evt_1'],
    [['request', 'list', ...inShop], `/requests?projectId=${projectId}`],
    [
      ['request', 'list', ...inShop, '--status', '4xx', '--limit', '1'],
      `/requests?projectId=${projectId}&status=4xx&limit=1`,
    ],
    [['request', 'list', '--without-key'], '/requests?isKeyless=true'],
    [['request', 'list', '--key', 'odd', ...inShop], `/requests?key=odd&projectId=${projectId}`],
    [['request', 'show', requests.made], `/requests/${requests.made}`],
    [['request', 'show', `req_${NOBODYS}`], `/requests/req_${NOBODYS}`],
    [['request', 'show', 'req_1'], '/requests/req_1'],
    [['webhook', 'list', ...inShop], `/webhooks?projectId=${projectId}`],
    [['webhook', 'show', bad], `/webhooks/${bad}`],
    [['webhook', 'show', 'whe_1'], '/webhooks/whe_1'],
    [['project', 'list'], '/projects'],
    [['project', 'show', projectId], `/projects/${projectId}`],
    [['project', 'show'], '/projects/-'],
    [['key', 'list', ...inShop], `/keys?projectId=${projectId}`],
    [['address', 'list', ...inShop], `/addresses?projectId=${projectId}`],
    [['address', 'list', ...inShop, '--after', 'x'], `/addresses?projectId=${projectId}&after=x`],
    [['address', 'pending', ...inShop], `/address-changes?projectId=${projectId}`],
    [['address', 'capacity', ...inShop], `/capacity?projectId=${projectId}`],
    [['address', 'capacity', ...inShop, '--amount', '25.00'], `/capacity/25.00?projectId=${projectId}`],
    [['chain', 'status'], '/chain/-'],
    [['chain', 'producers'], '/chain/devnet/producers'],
    [['audit', 'list'], '/audit'],
    [['audit', 'verify'], '/audit/verification'],
    [['master-key', 'status'], '/master-keys'],
  ];
}

/** Returns a function that finds where an answer differs from the API's document. */
function judgesOf({ paths }: OpenApi): (path: string) => (value: unknown) => unknown {
  const described = Object.entries(paths).flatMap(([template, { get }]) => {
    const schema = get?.responses['200']?.content['application/json']?.schema;
    const pattern = new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`);
    return schema === undefined ? [] : [{ isStatic: !template.includes('{'), pattern, schema }];
  });
  return (path) => {
    const found = described.filter(({ pattern }) => pattern.test(`/admin/v1${path.split('?', 1)[0]}`));
    const { schema } = found.find(({ isStatic }) => isStatic) ?? found[0] ?? { schema: false };
    return (value) => Schema.Errors(schema as object, value)[1];
  };
}

test('a command here, the same command by --server and the admin API answer byte for byte the same', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: at('12:00:00') });
  const shop = await openGoldenShop();
  // The rows were written around the program, so a command would report each one as unsealed.
  const env = { ...shop.ledger.env, QUITTANCE_MASTER_KEY: MASTER_KEY, QUITTANCE_ROW_MACS: 'off' };
  const networks = { devnet: { nodes: [], usdt: 'ab'.repeat(20), agreement: 1 } } as never;
  const { url } = await startConsoleOver(shop.ledger.env.DATABASE_URL, { networks });
  const { adminKey } = await newAdminKey(env, 'owner');
  const there = { QUITTANCE_SERVER: url, QUITTANCE_ADMIN_KEY: adminKey };
  const cases = casesOf(shop);
  const judge = judgesOf((await (await fetch(`${url}/openapi.json`)).json()) as OpenApi);
  expect(cases.length).toBeGreaterThanOrEqual(40);
  for (const [args, path] of cases) {
    const here = await runCli([...args, '--json'], { env });
    const byServer = await runCli([...args, '--json'], { env: there });
    expect({ args, ...byServer }).toEqual({ args, ...here });
    const text = await runCli(args, { env: there });
    expect({ args, ...text }).toEqual({ args, ...(await runCli(args, { env })) });
    // Advances the clock so that no rate limit applies.
    vi.setSystemTime(Date.now() + 1000);
    const answer = await fetch(`${url}/admin/v1${path}`, { headers: { authorization: `Bearer ${adminKey}` } });
    const body = await answer.text();
    if (answer.status === 200) {
      expect({ args, body }).toEqual({ args, body: here.stdout });
      expect({ args, problems: judge(path)(JSON.parse(body)) }).toEqual({ args, problems: [] });
      continue;
    }
    const { code, detail: message, errors } = JSON.parse(body);
    expect({ args, error: { code, message, ...(errors && { errors }) } }).toEqual({ args, error: here.json.error });
  }
});

test('without QUITTANCE_SERVER the option names the server, and the key may be typed nowhere but in the environment', async () => {
  const shop = await openGoldenShop();
  const { url } = await startConsoleOver(shop.ledger.env.DATABASE_URL);
  const { adminKey } = await newAdminKey(shop.ledger.env, 'viewer');
  const named = await runCli(['project', 'list', '--server', url, '--json'], {
    env: { QUITTANCE_ADMIN_KEY: adminKey },
  });
  expect(named).toMatchObject({ code: 0, json: { data: [{}, {}] } });
  const keyless = await runCli(['project', 'list', '--server', url, '--json']);
  expect(keyless).toMatchObject({ code: 2, json: { error: { code: 'INVALID_ARGUMENT' } } });
  const wrong = await runCli(['project', 'list', '--server', url], { env: { QUITTANCE_ADMIN_KEY: `${adminKey}x` } });
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).not.toContain(adminKey.slice(0, 40));
});

test('QUITTANCE_SERVER without a key sends no command elsewhere, and neither does QUITTANCE_URL with one', async () => {
  const shop = await openGoldenShop();
  for (const named of [
    { QUITTANCE_SERVER: 'http://127.0.0.1:1' },
    { QUITTANCE_URL: 'http://127.0.0.1:1', QUITTANCE_ADMIN_KEY: 'qa_1' },
  ]) {
    const env = { ...shop.ledger.env, ...named };
    expect(await runCli(['project', 'list', '--json'], { env })).toMatchObject({ code: 0 });
  }
});

test('what works on this machine only is refused with --server, and so is a plain way to another machine', async () => {
  const env = { QUITTANCE_ADMIN_KEY: 'qa_1' };
  for (const args of [
    ['start'],
    ['migrate'],
    ['backup'],
    ['devnet'],
    ['reconcile'],
    ['address', 'derive', '--count', '1'],
    ['address', 'confirm', `chg_${NOBODYS}`],
  ]) {
    const { code, json } = await runCli([...args, '--server', 'http://127.0.0.1:1', '--json'], { env });
    expect({ args, code, error: json.error }).toMatchObject({ args, code: 2, error: { code: 'USAGE' } });
  }
  for (const server of ['http://pay.example.com', 'ftp://127.0.0.1', 'https://u:p@pay.example.com', 'x']) {
    const { code, json } = await runCli(['project', 'list', '--server', server, '--json'], { env });
    expect({ server, code, error: json.error.code }).toEqual({ server, code: 2, error: 'INVALID_ARGUMENT' });
  }
});

test('a server that does not answer, or is none, is unavailable: exit code 5', async () => {
  const shop = await openGoldenShop();
  const { adminKey } = await newAdminKey(shop.ledger.env, 'viewer');
  const env = { QUITTANCE_ADMIN_KEY: adminKey };
  const { url } = await startConsoleOver(shop.ledger.env.DATABASE_URL);
  for (const server of ['http://127.0.0.1:1', `${url}/nothing-here`]) {
    const { code, json } = await runCli(['project', 'list', '--server', server, '--json'], { env });
    expect({ server, code, error: json.error.code }).toEqual({ server, code: 5, error: 'SERVER_UNAVAILABLE' });
  }
  expect((await call(`${url}/admin/v1/projects`)).status).toBe(401);
});

test('adding addresses is the one thing that a key does otherwise than a command here: it waits, because a key may be stolen', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: at('12:00:00') });
  const shop = await openGoldenShop();
  const { env: here } = shop.ledger;
  const { url } = await startConsoleOver(here.DATABASE_URL);
  const { adminKey } = await newAdminKey(here, 'owner');
  const env = { QUITTANCE_SERVER: url, QUITTANCE_ADMIN_KEY: adminKey };
  const { projectId } = shop.shop;
  const add = (byte: number) => ['address', 'add', addressOf(byte), '--project', projectId, '--no-check', '--json'];
  expect((await runCli(add(0xd1), { env: here })).json).toMatchObject({ projectId, added: [addressOf(0xd1)] });
  const byServer = await runCli(add(0xd2), { env });
  const headers = { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' };
  const input = { projectId, entries: [{ text: addressOf(0xd3), place: 'it' }], isChecked: false };
  const answer = await fetch(`${url}/admin/v1/addresses`, { method: 'POST', headers, body: JSON.stringify(input) });
  const body = await answer.text();
  const [one, two] = [byServer.json.proposed, JSON.parse(body).proposed];
  expect(one).toMatchObject({ state: 'waiting', addresses: [addressOf(0xd2)], proposedBy: { kind: 'admin' } });
  const alike = body.replace(two.changeId, one.changeId).replace(addressOf(0xd3), addressOf(0xd2));
  expect(alike).toBe(byServer.stdout);
  const judge = judgesOf((await (await fetch(`${url}/openapi.json`)).json()) as OpenApi);
  const path = `/address-changes/${two.changeId}`;
  const shown = await (await fetch(`${url}/admin/v1${path}`, { headers })).json();
  expect([shown, judge(path)(shown)]).toEqual([two, []]);
  expect((await runCli(['address', 'withdraw', one.changeId], { env })).stdout).toBe(`withdrawn ${addressOf(0xd2)}\n`);
  expect((await runCli(['address', 'confirm', two.changeId], { env: here })).stdout).toBe(`added ${addressOf(0xd3)}\n`);
});

test('a change by --server is made there, in the name of the key, with what stands in files and standard input here', async () => {
  const shop = await openGoldenShop();
  const { env: here } = shop.ledger;
  const { url } = await startConsoleOver(here.DATABASE_URL);
  const { adminKey } = await newAdminKey(here, 'owner');
  const env = { QUITTANCE_SERVER: url, QUITTANCE_ADMIN_KEY: adminKey };
  const { projectId } = shop.shop;
  const inShop = ['--project', projectId];
  const added = await runCli(['address', 'add', '-', ...inShop, '--no-check'], {
    env,
    stdin: `${addressOf(0xc1)} # till\n`,
  });
  expect(added).toMatchObject({ code: 0, stdout: `proposed ${addressOf(0xc1)}\n` });
  const logo = join(newDirectory(), 'logo.png');
  writeFileSync(logo, LOGOS.png);
  const branded = await runCli(['project', 'update', projectId, '--logo', logo, '--no-support', '--json'], { env });
  expect(branded).toMatchObject({ code: 0, json: { logoId: expect.any(String), supportContact: null } });
  const trf = encodeId('trf', shop.strays.short.id);
  const resolve = ['transfers', 'resolve', trf, '--as', 'refunded', '--json'];
  expect(await runCli([...resolve, '--by', 'bert'], { env })).toMatchObject({
    code: 2,
    json: { error: { code: 'USAGE' } },
  });
  expect(await runCli(resolve, { env })).toMatchObject({ code: 0, json: { resolvedBy: 'a owner' } });
  const { json } = await runCli(['audit', 'list', '--by', 'a owner', '--json'], { env: here });
  expect(json.data.map(({ action, actor }: Json) => [actor.kind, action])).toEqual([
    ['admin', 'transfer.resolved'],
    ['admin', 'project.changed'],
    ['admin', 'address.proposed'],
  ]);
  const viewer = await newAdminKey(here, 'viewer');
  const refused = await runCli(resolve, { env: { ...env, QUITTANCE_ADMIN_KEY: viewer.adminKey } });
  expect(refused).toMatchObject({ code: 1, json: { error: { code: 'FORBIDDEN' } } });
});
