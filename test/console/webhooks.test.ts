import { createHash } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { changeAdapterRate } from '../../src/core/store/outbox/adapter-orders.ts';
import { findWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { listEndpoints } from '../../src/faces/operator/subjects/webhooks.ts';
import { addTestAdapter } from '../adapters/fixture.ts';
import { eventually } from '../support/service.ts';
import {
  actorNamed,
  type Made,
  newInvoice,
  payInFull,
  type Reply,
  startTestConsole,
  type TestConsole,
  tokenIn,
  withOwner,
} from './console.ts';

let console_: TestConsole;
let invoice: Made;
let receiver: Server;
let target: string;
/** The receiver's status, and the paths that were requested. */
let status = 200;
const received: string[] = [];
const headers: IncomingHttpHeaders[] = [];

beforeAll(async () => {
  receiver = createServer((request, response) => {
    received.push(request.url ?? '');
    headers.push(request.headers);
    request.resume().on('end', () => response.writeHead(status).end('<b>hello</b>'));
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?key=${'k'.repeat(20)}`;
  console_ = await startTestConsole();
  invoice = await newInvoice(console_.service, 'order-1');
  await payInFull(console_.service, invoice);
});
afterAll(async () => {
  await console_.stop();
  receiver.close();
});

const endpoints = async () =>
  (
    await listEndpoints.run(
      { db: console_.service.db, now: () => unixMs(Date.now()) },
      commandActor('test'),
      console_.service.project,
    )
  ).data;
const auditOf = async (subject: string) => {
  const { data } = await listAudit.run(console_.service, commandActor('test'), readAuditFilter({ subject }));
  return data.map(({ action, actor }) => [action, actor.name]);
};

async function submit(path: string, form: Record<string, string>, headers = {}): Promise<Reply> {
  return console_.post(path, { token: tokenIn(await console_.get(path, headers), path), ...form }, headers);
}

const TYPES = { 'invoice.paid': 'yes', 'transfer.unmatched': 'yes' };

async function add(url: string): Promise<string> {
  const added = await submit('/webhooks/add', { url, ...TYPES, project: console_.service.project.projectId });
  expect(added.status).toBe(200);
  const [id = ''] = /whe_[0-9a-z]{26}/.exec(added.text) ?? [];
  return id;
}

test('the page of endpoints says at which rate shops order by adapters, where it is from, and when it is too old', async () => {
  const { service } = console_;
  const page = async () => (await console_.get(`/webhooks?project=${service.project.projectId}`)).text;
  expect(await page()).not.toContain('id="rates"');
  const { id } = await addTestAdapter(service, 'epay');
  expect(await page()).toMatch(/id="rates".*epay.*7\.2 CNY.*fixed/s);
  const source = { url: 'https://rates.example/?key=h0rse', path: '/cny', timePath: null, min: '7', max: '8' };
  const setRate = async (ageMs: number) => {
    const endpoint = await findWebhookEndpoint(service.db, id);
    if (endpoint === null) throw new Error('there is no adapter');
    const rateSource = JSON.stringify({ ...source, maxAgeMs: 600_000 });
    const read = { readMicro: 7_250_000n, readAt: unixMs(Date.now() - ageMs) };
    const bounds = { rateMinMicro: 7_000_000n, rateMaxMicro: 8_000_000n };
    await changeAdapterRate(service.db, endpoint, { rateMicro: 7_200_000n, rateSource, ...bounds, ...read });
  };
  await setRate(180_000);
  expect(await page()).toMatch(/7\.25 CNY.*rates\.example.*3 min/s);
  await setRate(660_000);
  expect(await page()).toContain('Too old: 11 min');
  expect(await page()).not.toContain('h0rse');
  await revokeApiKey(service.db, id, unixMs(Date.now()));
  expect(await page()).not.toContain('id="rates"');
});

test('an owner adds an endpoint, sees its secret once, tests it, and it hears of the next payment', async () => {
  const page = await submit('/webhooks/add', { url: target, description: 'till', ...TYPES });
  const [secret = ''] = /whsec_[\w+/=]+/.exec(page.text) ?? [];
  const [id = ''] = /whe_[0-9a-z]{26}/.exec(page.text) ?? [];
  expect(await endpoints()).toContainEqual(
    expect.objectContaining({ endpointId: id, eventTypes: ['invoice.paid', 'transfer.unmatched'] }),
  );
  const shown = (await console_.get(`/webhooks/${id}`)).text;
  expect(shown).not.toContain(secret);
  expect(shown).toContain(createHash('sha256').update(secret).digest('hex').slice(0, 12));
  const tested = await console_.post(`/webhooks/${id}/test`, {
    token: tokenIn(await console_.get(`/webhooks/${id}`), `/webhooks/${id}/test`),
  });
  expect([tested.status, tested.text]).toEqual([200, expect.stringContaining('The test arrived')]);
  const made = await newInvoice(console_.service, 'order-2');
  await payInFull(console_.service, made);
  await eventually(
    async () => (await console_.get(`/webhooks/${id}?status=delivered`)).text,
    (text) => text.includes('order-2'),
  );
  expect(await auditOf(id)).toEqual([
    ['webhook.tested', 'Ana'],
    ['webhook.added', 'Ana'],
  ]);
});

test('a web page that answers events is shown at its endpoint, at its event, in the list and on Today', async () => {
  const page = createServer((request, response) =>
    request.resume().on('end', () => response.writeHead(200).end('<!doctype html><title>Log in & go</title>')),
  );
  await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
  const id = await add(`http://127.0.0.1:${(page.address() as AddressInfo).port}/hook`);
  await payInFull(console_.service, await newInvoice(console_.service, 'order-page'));
  const shown = await eventually(
    async () => (await console_.get(`/webhooks/${id}`)).text,
    (text) => text.includes('Web page responds'),
  );
  expect(shown).toContain('was a web page, “<bdi>Log in &amp; go</bdi>”');
  const [event = ''] = /evt_[0-9a-z]{26}/.exec(shown) ?? [];
  const attempts = (await console_.get(`/events/${event}`)).text;
  expect(attempts).toContain('web page</span>');
  expect(attempts).toContain('exempt the route from login');
  expect((await console_.get('/webhooks')).text).toContain('the web page “<bdi>Log in &amp; go</bdi>”');
  expect((await console_.get('/')).text).toContain('returns a web page for events, “Log in &amp; go”');
  await submit(`/webhooks/${id}/disable`, { reason: 'a page' });
  page.close();
});

test('a failing receiver is diagnosed, counted, and what it missed is sent again with the number first', async () => {
  const id = await add(target.replace('hook', 'second'));
  status = 404;
  const path = `/webhooks/${id}`;
  const tested = await console_.post(`${path}/test`, { token: tokenIn(await console_.get(path), `${path}/test`) });
  expect(tested.text).toContain('the server has no route at the URL&#39;s path');
  expect(tested.text).toContain('&lt;b&gt;hello');
  await submit(`${path}/disable`, { reason: 'moves house' });
  expect((await console_.get(path)).text).toContain('moves house (by Ana)');
  const made = await newInvoice(console_.service, 'while it was away');
  await payInFull(console_.service, made);
  status = 200;
  const enabled = await console_.post(`${path}/enable`, { token: tokenIn(await console_.get(path), `${path}/enable`) });
  expect((await console_.get(enabled.headers.get('location') ?? '')).text).toMatch(
    /\d more were given up or happened while it was disabled/,
  );
  const from = '2020-01-01';
  expect((await console_.get(`${path}/replay?from=${from}`)).status).toBe(400);
  const since = new Date(console_.service.clock.now() - 3_600_000).toISOString();
  const asked = await console_.get(`${path}/replay?from=${encodeURIComponent(since)}&status=all`);
  const [, number = '0'] = /<h2 id="found">(\d+) event/.exec(asked.text) ?? [];
  expect(Number(number)).toBeGreaterThanOrEqual(2);
  const count = () => received.filter((path) => path.startsWith('/second')).length;
  const before = count();
  const form = { token: tokenIn(asked, `${path}/replay`), from: since, status: 'all' };
  const sent = await console_.post(`${path}/replay`, form);
  expect(sent.headers.get('location')).toBe(`${path}?replayed=${number}`);
  await eventually(
    async () => count() - before,
    (sent) => sent >= Number(number),
  );
  expect((await console_.post(`${path}/replay`, form)).status).toBe(409);
  expect(count() - before).toBe(Number(number));
});

test('a new secret signs beside the former one, and both fingerprints are shown with the end', async () => {
  const id = await add(target.replace('hook', 'third'));
  const path = `/webhooks/${id}`;
  const fingerprints = async () =>
    [...(await console_.get(path)).text.matchAll(/fingerprint <code>([0-9a-f]{12})/g)].map(([, each]) => each);
  const [first] = await fingerprints();
  expect((await console_.get(`${path}/rotate`)).text).toContain(`fingerprint <code>${first}`);
  const rotated = await submit(`${path}/rotate`, { overlap: '7d' });
  const [secret = ''] = /whsec_[\w+/=]+/.exec(rotated.text) ?? [];
  expect(await fingerprints()).toEqual([createHash('sha256').update(secret).digest('hex').slice(0, 12), first]);
  expect((await console_.get(path)).text).toMatch(/in use until/);
});

test('an event shows each attempt, and is sent again once for each form', async () => {
  const { text } = await console_.get(`/invoices/${invoice.invoiceId}`);
  const [eventId = ''] = /evt_[0-9a-z]{26}/.exec(text) ?? [];
  const page = await console_.get(`/events/${eventId}`);
  expect(page.text).toContain('webhook-timestamp');
  const form = { token: tokenIn(page, `/events/${eventId}/replay`) };
  expect((await console_.post(`/events/${eventId}/replay`, form)).status).toBe(303);
  expect((await console_.post(`/events/${eventId}/replay`, form)).status).toBe(409);
});

test('an event shows the headers of each attempt as the receiver got them, but for the signatures', async () => {
  const sent = headers.findLast((each) => each['webhook-id'] !== undefined) ?? {};
  const { text } = await eventually(
    () => console_.get(`/events/${sent['webhook-id']}`),
    // An attempt is recorded after the receiver has answered it, and the newest one isn't necessarily the event's first.
    ({ text }) => text.includes(`webhook-timestamp: ${sent['webhook-timestamp']}`),
  );
  expect(text).toContain('Attempt 1');
  for (const name of ['webhook-id', 'webhook-timestamp', 'content-type', 'webhook-protocol'])
    expect(text).toContain(`${name}: ${sent[name]}\n`.trim());
  const [, secret = ''] = String(sent['webhook-signature']).split(',');
  expect(secret.length).toBeGreaterThan(40);
  expect(text).not.toContain(secret);
});

test('what is wrong is said with the label of the field, and nothing is changed', async () => {
  const targets = async () =>
    (await endpoints()).map(({ endpointId, url, eventTypes }) => [endpointId, url, eventTypes]);
  const before = await targets();
  for (const [form, said] of [
    [{ url: 'ftp://shop.example/', ...TYPES }, '“URL”'],
    [{ url: 'http://10.0.0.1/', ...TYPES }, '“URL”'],
    [{ url: target }, '“Event types” is empty'],
    [{ url: 'https://shop.example/', description: 'ש'.repeat(201), ...TYPES }, '“Description'],
  ] as const) {
    const reply = await submit('/webhooks/add', form);
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining(said)]);
  }
  expect((await console_.post('/webhooks/add', { url: target, ...TYPES })).status).toBe(409);
  expect((await submit('/webhooks/add', { url: target, surprise: '1' })).status).toBe(400);
  expect(await targets()).toEqual(before);
});

test('operators test and send again, viewers look, and what is of another project is as unknown', async () => {
  const id = await add(target.replace('hook', 'fourth'));
  const path = `/webhooks/${id}`;
  const statusOf = async (name: string, to: string) => (await console_.get(to, { 'x-actor': name })).status;
  for (const form of ['/webhooks/add', `${path}/change`, `${path}/rotate`, `${path}/disable`]) {
    expect([await statusOf('otto', form), await statusOf('vera', form)], form).toEqual([403, 403]);
    expect((await console_.post(form, {}, { 'x-actor': 'otto' })).status, form).toBe(403);
  }
  expect([await statusOf('vera', path), await statusOf('vera', `${path}/replay`)]).toEqual([200, 403]);
  expect((await console_.get(path, { 'x-actor': 'vera' })).text).not.toContain('Send a test');
  expect((await console_.get(path, { 'x-actor': 'otto' })).text).toContain('Send a test');
  console_.actors['nora'] = actorNamed('Nora', {
    role: 'operator',
    projects: ['0190a8c0-0000-7000-8000-000000000000'],
  });
  const unknown = encodeId('whe', '0190a8c0-0000-7000-8000-000000000000');
  for (const to of [
    path,
    `${path}/replay`,
    `/webhooks/${unknown}`,
    '/webhooks/nonsense',
    `/events/${encodeId('evt', '0190a8c0-0000-7000-8000-000000000000')}`,
  ]) {
    expect(await statusOf('nora', to), to).toBe(404);
  }
  expect((await console_.post(`${path}/test`, {}, { 'x-actor': 'nora' })).status).not.toBe(200);
});

test('a secret that no key opens is said, and the page stands', async () => {
  const id = await add(target.replace('hook', 'fifth'));
  await withOwner(console_.service, (client) =>
    client.query(
      `update webhook_secrets set sealed = decode(repeat('00', octet_length(sealed)), 'hex') where endpoint_id = (select id from webhook_endpoints where url like '%fifth%')`,
    ),
  );
  expect((await console_.get(`/webhooks/${id}`)).text).toContain('cannot be decrypted');
});
