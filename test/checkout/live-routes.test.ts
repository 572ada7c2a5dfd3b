import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { registerLive } from '../../src/faces/checkout/live/live-routes.ts';
import { createLookupLimits, registerAsk } from '../../src/faces/checkout/lookup/lookup.ts';
import type { Site } from '../../src/faces/checkout/page/page-state.ts';
import { limitPages, registerCheckout, registerLogos } from '../../src/faces/checkout/page/register.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { type EventStream, openEventStream } from '../support/event-stream.ts';
import { call, eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { createLiveFixture, type LiveFixture, type LiveInvoice, SITE } from './live-fixture.ts';

const BEAT_MS = 50;

async function listen(fixture: LiveFixture, site: Site = SITE): Promise<{ url: string; app: FastifyInstance }> {
  const { deps, metrics } = fixture;
  const { publicUrl } = site;
  const random = (bytes: number) => new Uint8Array(bytes);
  // The test itself blocks this event loop.
  const app = createServer({ ...deps, publicUrl, random, trustProxy: ['loopback'], metrics, lagMs: () => 0 });
  limitPages(app, deps);
  registerCheckout(app, { ...deps, site });
  registerAsk(app, { ...deps, site, readTransaction: {}, limits: createLookupLimits(deps.now) });
  registerLogos(app, deps);
  registerLive(app, { ...deps, metrics, site, beatMs: BEAT_MS, lookMs: 50, sweepMs: 100 });
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` };
}

let fixture: LiveFixture;
let app: FastifyInstance;
let url: string;
let invoice: LiveInvoice;
beforeAll(async () => {
  fixture = await createLiveFixture();
  // Like an attacker who owns the database.
  await fixture.sql('alter table addresses drop constraint addresses_text');
  ({ app, url } = await listen(fixture));
  invoice = await fixture.invoice();
});
afterAll(async () => {
  await app.close();
  await fixture.close();
});

const open = async (path = '', headers: Record<string, string> = {}): Promise<EventStream> => {
  const stream = await openEventStream(`${url}/c/${invoice.token}/live${path}`, { headers });
  onTestFinished(() => stream.close());
  return stream;
};
const firstOf = (stream: EventStream) =>
  eventually(
    () => stream.messages(),
    ({ length }) => length > 0,
  );
const openPages = async () => (await fixture.metrics.openPages.get()).values[0]?.value;
const noPages = () => eventually(openPages, (count) => count === 0);

test('a stream says how to come back, what the page is, and the time, and is neither kept nor gathered on its way', async () => {
  const stream = await open();
  const [message] = await firstOf(stream);
  expect(stream.status).toBe(200);
  expect(stream.headers).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex, nofollow',
    'x-request-id': expect.stringMatching(/^req_/),
  });
  expect(stream.text()).toMatch(/^retry: 3000\nevent: beat\ndata: \d+\n\nevent: page\n/);
  expect(message).toMatchObject({ state: 'waiting', version: expect.any(String), now: fixture.deps.now() });
  expect(message?.id).toBe(message?.version);
  await eventually(
    () => stream.text(),
    (text) => text.includes(`event: beat\ndata: ${fixture.deps.now()}\n\n`),
  );
  expect((await fixture.metrics.requestSeconds.get()).values).toContainEqual(
    expect.objectContaining({ labels: expect.objectContaining({ route: '/c/:token/live', status: '200' }) }),
  );
});

test('a reader who shows the present version is sent nothing, and the header of one who comes back counts more than the query', async () => {
  const [message] = await firstOf(await open());
  const version = message?.version ?? '';
  const same = await open(`?v=${version}`);
  const back = await open('?v=old', { 'last-event-id': version });
  const other = await open(`?v=${version}`, { 'last-event-id': 'old' });
  expect(await firstOf(other)).toHaveLength(1);
  await eventually(
    () => [same.text(), back.text()],
    (texts) => texts.every((text) => text.split('event: beat').length > 2),
  );
  expect([...same.messages(), ...back.messages()]).toEqual([]);
});

test('whoever opens a page whose payment is gone is told so, on the same stream, on the next one and by polling', async () => {
  const paying = await fixture.invoice();
  const path = `${url}/c/${paying.token}/live`;
  const stream = await openEventStream(path);
  onTestFinished(() => stream.close());
  await fixture.mine();
  await fixture.detect(paying);
  const seen = await eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === 'seen',
  );
  await fixture.sql('delete from sightings');
  await fixture.setStatus('PENDING', [paying]);
  const gone = await eventually(
    () => stream.messages().at(-1),
    (message) => message?.state === 'replaced',
  );
  expect(gone?.parts.status).toContain('replaced the block');
  const again = await openEventStream(`${path}?v=${seen?.version}`);
  onTestFinished(() => again.close());
  expect((await firstOf(again))[0]?.parts.status).toContain('replaced the block');
  const byHand = await call(`${url}/c/${paying.token}/parts?v=${seen?.version}`);
  expect(byHand.body.parts.status).toContain('replaced the block');
});

/** Changes the text of an address in the database, like an attacker who bypasses its guards. */
const setAddressText = async (text: string) => {
  await fixture.sql("set session_replication_role = 'replica'");
  const { rows } = await fixture.sql('select address from addresses limit 1');
  await fixture.sql('update addresses set address = $1', [text]);
  await fixture.sql("set session_replication_role = 'origin'");
  return String(rows[0]?.address);
};

const THIEF = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

const BEFORE: { state: string; reach(invoice: LiveInvoice): Promise<unknown> }[] = [
  { state: 'waiting', reach: async () => undefined },
  { state: 'expired', reach: (invoice) => fixture.setStatus('EXPIRED', [invoice]) },
  {
    state: 'withdrawn',
    reach: (invoice) => fixture.sql('update invoices set withdrawn_at = now() where id = $1', [invoice.id]),
  },
  { state: 'seen', reach: (invoice) => fixture.mine().then(() => fixture.detect(invoice)) },
];

test.each(BEFORE)(
  'in the state $state, a suspension reaches the open page, a poll, a reload and the status, nothing answers with an address, and its end reaches them too',
  async ({ state, reach }) => {
    const paying = await fixture.invoice();
    await reach(paying);
    const link = `${url}/c/${paying.token}`;
    const stream = await openEventStream(`${link}/live`);
    onTestFinished(() => stream.close());
    const last = () => stream.messages().at(-1);
    const shown = await eventually(last, (message) => message?.state === state);
    const address = await setAddressText(THIEF);
    onTestFinished(() => setAddressText(address).then(() => undefined));
    const suspended = await eventually(last, (message) => message?.state === 'suspended');
    const parts = await call(`${link}/parts?v=${shown?.version}`);
    expect(parts).toMatchObject({ status: 200, body: { state: 'suspended', version: suspended?.version } });
    expect(await call(`${link}/parts?v=${suspended?.version}`)).toMatchObject({ status: 204 });
    const status = await call(`${link}/status`);
    expect(status).toMatchObject({ status: 200, body: { state: 'suspended', amount: null, address: null } });
    const page = await fetch(link);
    const reloaded = await page.text();
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '60']);
    expect(reloaded).toContain(
      `data-state="suspended" data-shop-state="suspended" data-version="${suspended?.version}"`,
    );
    const later = await openEventStream(`${link}/live?v=${suspended?.version}`);
    onTestFinished(() => later.close());
    const asked = await fetch(`${link}/ask`, { method: 'POST', body: new URLSearchParams({ paste: address }) });
    const proof = await fetch(`${link}/address-proof.json`);
    const receipt = await fetch(`${link}/receipt`);
    const others = await Promise.all([asked, proof, receipt].map((answer) => answer.text()));
    for (const text of [JSON.stringify([suspended, parts, status]), reloaded, ...others]) {
      const read = text.replace(/<style.*?<\/style>/s, '').replaceAll('\\"', '"');
      expect(read).not.toMatch(new RegExp(`${address}|${THIEF}|class="qr|data-copy="|id="amount|payment is safe`));
    }
    for (const text of [suspended?.parts.status ?? '', reloaded, others[0] ?? '']) {
      expect(text).toContain('keep the transaction ID and contact the shop in a way that you already know');
    }
    await setAddressText(address);
    await eventually(last, (message) => message?.state === state);
    const back = await eventually(
      () => later.messages().at(-1),
      (message) => message?.state === state,
    );
    expect((back?.parts.pay ?? '').includes(address)).toBe(state === 'waiting' || state === 'expired');
    expect((await call(`${link}/parts?v=${suspended?.version}`)).body).toMatchObject({ state });
  },
);

test('the proof of an address, which holds the address, is answered only while the page shows the address, or for a payment', async () => {
  const own = await createLiveFixture();
  onTestFinished(() => own.close());
  const proof = { head: 'signed', signatures: [], network: 'devnet', projectId: 'prj_1', path: [] };
  const server = await listen(own, { ...SITE, proofOf: () => proof });
  onTestFinished(() => server.app.close());
  const [paying, withdrawn] = [await own.invoice(), await own.invoice()];
  const ask = async ({ token }: LiveInvoice) => ({
    proof: (await call(`${server.url}/c/${token}/address-proof.json`)).body,
    isLinked: (await (await fetch(`${server.url}/c/${token}`)).text()).includes('address-proof.json'),
  });
  const shown = { proof: { address: expect.any(String), addressProof: proof }, isLinked: true };
  const withheld = {
    proof: { error: 'this invoice asks for no payment now, so its address and the proof are not shown' },
    isLinked: false,
  };
  expect(await ask(paying)).toEqual(shown);
  await own.sql('update invoices set withdrawn_at = now() where id = $1', [withdrawn.id]);
  expect(await ask(withdrawn)).toEqual(withheld);
  await own.sql("update addresses set freeze_state = 'frozen'");
  expect(await ask(paying)).toEqual(withheld);
  await own.mine();
  await own.detect(paying);
  expect(await ask(paying)).toEqual(shown);
});

test('the same is to be had by polling: everything, or 204 where nothing is new', async () => {
  const { status, body, headers } = await call(`${url}/c/${invoice.token}/parts`);
  expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
  const [message] = await firstOf(await open());
  expect({ ...body, id: body.version }).toEqual(message);
  const same = await call(`${url}/c/${invoice.token}/parts?v=${body.version}`);
  // The page's own clock stops while the device sleeps, so it needs the time here too.
  expect(same).toMatchObject({ status: 204, body: null, headers: { 'x-now': String(fixture.deps.now()) } });
});

test('a link that is unknown or malformed has no stream, and is answered as its status is', async () => {
  const own = ({
    headers: { date: _1, 'x-request-id': _2, ...headers },
    ...rest
  }: Awaited<ReturnType<typeof call>>) => ({
    ...rest,
    headers: { ...headers, 'content-security-policy': undefined },
  });
  // The service notices a moment later that earlier tests have closed their streams.
  await noPages();
  const unknown = own(await call(`${url}/c/1111111111111111111111/status`));
  expect(unknown.status).toBe(404);
  for (const token of ['1111111111111111111111', 'x', '%3Cscript%3E', '1'.repeat(3000)]) {
    for (const below of ['live', 'parts']) {
      expect(own(await call(`${url}/c/${token}/${below}`)), token).toEqual(unknown);
    }
  }
  expect(await openPages()).toBe(0);
});

test('HEAD opens no stream', async () => {
  await noPages();
  const head = await openEventStream(`${url}/c/${invoice.token}/live`, { method: 'HEAD' });
  expect([head.status, head.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
  await eventually(head.hasEnded, (hasEnded) => hasEnded);
  expect(head.text()).toBe('');
  expect(await openPages()).toBe(0);
  const unknown = await openEventStream(`${url}/c/1111111111111111111111/live`, { method: 'HEAD' });
  expect(unknown.status).toBe(404);
  const parts = await openEventStream(`${url}/c/${invoice.token}/parts`, { method: 'HEAD' });
  expect([parts.status, parts.text()]).toEqual([200, '']);
});

test('the 21st stream of a link is refused, and has room when one was closed', async () => {
  await noPages();
  const streams: EventStream[] = [];
  while (streams.length < 20) streams.push(await open());
  const refused = await call(`${url}/c/${invoice.token}/live`);
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '60' }, body: { code: 'UNAVAILABLE' } });
  expect((await call(`${url}/c/${invoice.token}/parts`)).status).toBe(200);
  streams[7]?.close();
  await eventually(openPages, (count) => count === 19);
  expect((await open()).status).toBe(200);
});

test('nothing is kept of a reader who has gone', async () => {
  await noPages();
  for (let i = 0; i < 5; i++) (await open()).close();
  // The client disconnected before there was an answer.
  const hasty = new AbortController();
  const asked = fetch(`${url}/c/${invoice.token}/live`, { signal: hasty.signal }).catch(() => 'gone');
  hasty.abort();
  expect(await asked).toBe('gone');
  await noPages();
});

test('streams that are asked for behind another on one connection are refused, and nothing is kept of them', async () => {
  await noPages();
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const line = `GET /c/${invoice.token}/live HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
  socket.write(line.repeat(5));
  await once(socket, 'data');
  await eventually(openPages, (count) => count === 1);
  socket.destroy();
  await noPages();
});

longTest('one client network may open 500 pages at once and 50 a second; another is not held up', async () => {
  const from = (ip: string, below: string, { method = 'GET', root = '/c/' } = {}) =>
    fetch(`${url}${root}${below}`, { method, headers: { 'x-forwarded-for': ip } }).then(async (answer) => ({
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      type: answer.headers.get('content-type'),
      text: await answer.text(),
    }));
  // Unknown links count too.
  const first = await Promise.all(Array.from({ length: 500 }, () => from('192.0.2.1', 'unknown/parts')));
  expect(first.every(({ status }) => status === 404)).toBe(true);
  const page = await from('192.0.2.1', invoice.token);
  expect(page).toMatchObject({ status: 429, retryAfter: '1', type: 'text/html; charset=utf-8' });
  expect(page.text).toContain('your payment is safe');
  const asked = await from('192.0.2.1', `${invoice.token}/ask`, { method: 'POST' });
  expect(asked).toMatchObject({ status: 429, type: 'text/html; charset=utf-8' });
  expect((await from('192.0.2.1', '0'.repeat(32), { root: '/logos/' })).status).toBe(429);
  for (const below of ['live', 'parts', 'status']) {
    const refused = await from('192.0.2.1', `${invoice.token}/${below}`);
    expect(refused).toMatchObject({ status: 429, retryAfter: '1', type: 'application/problem+json; charset=utf-8' });
  }
  expect((await from('192.0.2.2', invoice.token)).status).toBe(200);
  fixture.advance(1000);
  expect((await from('192.0.2.1', invoice.token)).status).toBe(200);
});

test('a stop ends every stream and waits for none', async () => {
  const own = await createLiveFixture();
  onTestFinished(() => own.close());
  const server = await listen(own);
  const { token } = await own.invoice();
  const streams = await Promise.all([1, 2, 3].map(() => openEventStream(`${server.url}/c/${token}/live`)));
  await server.app.close();
  await eventually(
    () => streams.map((stream) => stream.hasEnded()),
    (ended) => ended.every(Boolean),
  );
});
