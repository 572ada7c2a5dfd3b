import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SOURCE_COMMAND } from '../support/command.ts';
import { createSandboxInvoice, runInSandbox, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

const ROOT = resolve(import.meta.dirname, '../..');

let dataDir: string;
let sandbox: SandboxProcess;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-sandbox-'));
  await chmod(dataDir, 0o711);
  sandbox = await startSandboxProcess(dataDir, {}, SOURCE_COMMAND);
});
afterAll(async () => {
  await sandbox.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
});

const quittance = (...args: string[]) => runInSandbox(dataDir, ...args);
const headers = () => ({ 'x-api-key': sandbox.file.apiKey, 'content-type': 'application/json' });
const create = (externalId: string) => createSandboxInvoice(sandbox.file, externalId);
const read = async (id: string) =>
  (await call(`${sandbox.file.baseUrl}/v1/invoices/${id}`, { headers: headers() })).body;
const untilPaid = (id: string) =>
  eventually(
    () => read(id),
    ({ status }) => status === 'PAID',
  );

test('sandbox.json has what scripts rely on, for this user alone', async () => {
  expect(Object.keys(sandbox.file)).toEqual([
    'baseUrl',
    'apiKey',
    'projectId',
    'webhookSecret',
    'inboxUrl',
    'nodeUrl',
    'grpcUrl',
    'grpcSolidityUrl',
    'usdtContract',
    'addresses',
    'retiredAddress',
    'payer',
    'pid',
  ]);
  expect((await stat(join(dataDir, 'sandbox.json'))).mode & 0o777).toBe(0o600);
  expect((await call(`${sandbox.file.baseUrl}/readyz`)).status).toBe(200);
});

test('secrets are in no file that others can read, and not in the log', async () => {
  const { apiKey, webhookSecret, payer } = sandbox.file;
  const log = sandbox.output().replace(/\nQuittance sandbox:[\s\S]*?Ctrl-C/, '');
  for (const secret of [apiKey, webhookSecret, payer.privateKey]) expect(log).not.toContain(secret);
  for (const name of await readdir(dataDir)) {
    const entry = await stat(join(dataDir, name));
    // A lock contains a process id, and other users may see who holds it.
    if (entry.isFile() && !name.endsWith('.lock'))
      expect({ name, open: entry.mode & 0o077 }).toEqual({ name, open: 0 });
  }
});

test('the inbox verifies with the secret of its endpoint, also after that was rotated', async () => {
  const { data } = await quittance('webhook', 'list', '--project', sandbox.file.projectId);
  const [{ endpointId }] = data.filter(({ url }: Json) => url === sandbox.file.inboxUrl);
  await quittance('webhook', 'rotate', endpointId, '--overlap', '0');
  expect(await quittance('webhook', 'test', endpointId)).toMatchObject({ isDelivered: true });
});

test('sandbox pay takes a checkout URL too', async () => {
  const { invoiceId, checkoutUrl } = await create('order-by-url');
  await quittance('sandbox', 'pay', checkoutUrl);
  await untilPaid(invoiceId);
});

test('the quick start can be pasted as it is printed, in order', async () => {
  const pasted = [...sandbox.output().matchAll(/^ {3}(?:curl|npm) (?:.*\\\n)*.*$/gm)].map(([command]) => command);
  expect(pasted).toHaveLength(3);
  const run = async (command: string) => {
    const env = { ...process.env, QUITTANCE_DATA_DIR: dataDir };
    return (await promisify(execFile)('/bin/sh', ['-c', command], { cwd: ROOT, env })).stdout;
  };
  const [creation = '', payment = '', inbox = ''] = pasted;
  const { invoiceId } = JSON.parse(await run(creation));
  await run(payment);
  await untilPaid(invoiceId);
  await eventually(
    () => run(inbox),
    (shown) =>
      JSON.parse(shown).data.some(
        (got: Json) => got.verified && got.type === 'invoice.paid' && got.body.data.invoiceId === invoiceId,
      ),
  );
});

test('the document of a sandbox declares the tag of each operation', async () => {
  const { tags, paths } = (await call(`${sandbox.file.baseUrl}/openapi.json`)).body;
  const used = Object.values<Json>(paths).flatMap((path) => Object.values<Json>(path).flatMap((each) => each.tags));
  expect(used).toContain('sandbox');
  expect(used.filter((tag) => !tags.some(({ name }: Json) => name === tag))).toEqual([]);
});

test('the reference of a sandbox fits its bound, with a program that pays', async () => {
  const page = await (await fetch(`${sandbox.file.baseUrl}/docs`)).text();
  expect(page).toContain('<h3 id="sandboxPay">');
  expect(page).toContain(`curl -sS '${sandbox.file.baseUrl}/sandbox/pay'`);
  expect(Buffer.byteLength(page)).toBeLessThan(85_000);
});

test('the link that is printed at last signs in to the console', async () => {
  const link = await eventually(
    () => /http:\/\/localhost:\d+\/sandbox\/[\w-]{43}/.exec(sandbox.output())?.[0],
    (found) => found !== undefined,
  );
  const [start = '', token = ''] = (link ?? '').split('/sandbox/');
  const cookie = `quittance=${token}`;
  expect((await fetch(link ?? '', { redirect: 'manual' })).headers.get('set-cookie')).toContain(cookie);
  const today = await fetch(`${start}/`, { headers: { cookie } });
  expect([today.status, await today.text()]).toEqual([200, expect.stringContaining('<h1>Today</h1>')]);
  expect((await fetch(`${start}/`, { redirect: 'manual' })).status).toBe(303);
});

test('after one payment every screen of the console has something to show, and an empty one says how to fill it', async () => {
  const start = /http:\/\/localhost:\d+(?=\/sandbox\/)/.exec(sandbox.output())?.[0] ?? '';
  const token = /\/sandbox\/([\w-]{43})/.exec(sandbox.output())?.[1];
  const { invoiceId } = await create('seen-in-the-console');
  await quittance('sandbox', 'pay', invoiceId);
  await untilPaid(invoiceId);
  const show = async (path: string) => {
    const answer = await fetch(start + path, { headers: { cookie: `quittance=${token}` }, redirect: 'manual' });
    return { status: answer.status, text: await answer.text() };
  };
  const screens: [path: string, shows: RegExp][] = [
    ['/', /USDT paid today<\/dt><dd>.*?<dd class="hint">[1-9]\d* payment/],
    ['/invoices', /seen-in-the-console/],
    [`/invoices/${invoiceId}`, /data-state="PAID"/],
    ['/unmatched', /sandbox pay INVOICE --scenario twice/],
    ['/webhooks', /class="row" href="\/webhooks\/whe_/],
    ['/addresses', /In use/],
    ['/chain', /Up to date|Behind|Held up/],
    ['/reports', /by \d+ paid invoices?/],
    ['/requests', /POST[\s\S]*\/v1\/invoices/],
    ['/settings', /API keys/],
  ];
  for (const [path, shows] of screens) {
    const { status, text } = await eventually(
      () => show(path),
      ({ text }) => shows.test(text),
    );
    expect([path, status, path !== '/unmatched' && text.includes('card empty')]).toEqual([path, 200, false]);
  }
  await quittance('sandbox', 'pay', (await create('a-mistake')).invoiceId, '--scenario', 'twice');
  await eventually(
    () => show('/unmatched'),
    ({ text }) => text.includes('class="row"'),
  );
});

test('a project, key, address and webhook that are added while the sandbox runs work at once', async () => {
  const project = await quittance('project', 'create', '--name', 'Second shop', '--network', 'devnet');
  const { apiKey } = await quittance('key', 'create', '--project', project.projectId);
  await quittance('address', 'add', '--project', project.projectId, 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH');
  await quittance('webhook', 'add', '--project', project.projectId, '--url', 'http://127.0.0.1:9/hook');
  const answer = await call(`${sandbox.file.baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers(), 'x-api-key': apiKey, 'idempotency-key': 'first' },
    body: JSON.stringify({ amount: '1', asset: 'USDT', network: 'TRON', externalId: 'first' }),
  });
  expect(answer.status).toBe(201);
});

longTest(
  'a database that dies by itself ends the sandbox with the reason and an error code, and the next start goes on',
  async () => {
    const { invoiceId } = await create('order-before-death');
    process.kill(sandbox.postgresPid, 'SIGKILL');
    expect(await sandbox.ended).toBe(1);
    expect(sandbox.output()).toMatch(/error: The embedded PostgreSQL in .* ended .*Start Quittance again/);
    sandbox = await startSandboxProcess(dataDir);
    expect((await read(invoiceId)).externalId).toBe('order-before-death');
  },
);

longTest('a data directory of a release without retired addresses gets one, and keeps the rest', async () => {
  const before = sandbox.file;
  await sandbox.end('SIGINT');
  const path = join(dataDir, 'sandbox-secrets.json');
  const { retired: _unknown, ...old } = JSON.parse(await readFile(path, 'utf8'));
  await writeFile(path, JSON.stringify(old));
  sandbox = await startSandboxProcess(dataDir);
  const { apiKey, addresses, retiredAddress } = sandbox.file;
  expect({ apiKey, addresses }).toEqual({ apiKey: before.apiKey, addresses: before.addresses });
  expect(retiredAddress).not.toBe(before.retiredAddress);
  const { data: listed } = await quittance('address', 'list', '--project', sandbox.file.projectId);
  const retired = listed.filter(({ retiredAt }: Json) => retiredAt !== null);
  expect(retired.map(({ address }: Json) => address)).toEqual([before.retiredAddress, retiredAddress]);
});
