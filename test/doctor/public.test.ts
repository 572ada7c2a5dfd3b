import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCertificate } from '../support/create-certificate.ts';
import { call, startTestService, type TestService } from '../support/service.ts';
import { examine, expectNamed, type Fault, settingsOf, told } from './doctored.ts';

let service: TestService;
/** Trusts proxies on this machine. */
let trusting: TestService;
beforeAll(async () => {
  service = await startTestService();
  trusting = await startTestService({ config: { trustProxy: ['loopback'] } });
});
afterAll(async () => {
  await service.stop();
  await trusting.stop();
});

type Handler = (asked: IncomingMessage, response: ServerResponse) => void;

async function serve(handler: Handler, tls?: { key: string; cert: string }) {
  const server = tls === undefined ? createServer(handler) : createTlsServer(tls, handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://localhost:${port}`,
    undo: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

type Proxying = { forwarded?: 'append' | 'drop' | 'keep'; isGathering?: boolean };

/** A reverse proxy in front of a service, as someone might configure it. */
const proxyTo =
  (running: TestService, { forwarded = 'append', isGathering = false }: Proxying = {}): Handler =>
  (asked, response) => {
    const { 'x-forwarded-for': sent, ...headers } = asked.headers;
    const chain = {
      append: [sent, '203.0.113.9'].flat().filter(Boolean).join(', '),
      keep: String(sent ?? ''),
      drop: '',
    };
    const value = chain[forwarded];
    const passed = { ...headers, ...(value === '' ? {} : { 'x-forwarded-for': value }) };
    const asking = request(`${running.url}${asked.url}`, { method: asked.method, headers: passed }, async (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      if (isGathering) response.end(Buffer.concat(await answer.toArray()));
      else answer.pipe(response);
    });
    asking.on('error', () => response.writeHead(502).end('Bad Gateway'));
    asking.end();
  };

async function through(handler: Handler, tls?: { key: string; cert: string }) {
  const { url, undo } = await serve(handler, tls);
  return { settings: { publicUrl: url }, undo };
}

const FAULTS: Fault[] = [
  {
    ...{ title: 'a service that is not ready', check: 'service', state: 'failed', fix: /The service's log/ },
    plant: async () => {
      const { url, undo } = await serve((_asked, response) =>
        response.writeHead(503).end(JSON.stringify({ status: 'unavailable', reason: 'the disk is full' })),
      );
      return { settings: { localUrl: url, metricsUrl: url }, undo };
    },
  },
  {
    ...{ title: 'no public URL with real money', check: 'public-url', state: 'failed', fix: /QUITTANCE_PUBLIC_URL/ },
    plant: (running) => ({
      settings: {
        publicUrl: null,
        networks: settingsOf(running).networks.map((each) => ({ ...each, network: 'mainnet' as const })),
      },
    }),
  },
  {
    ...{ title: 'a public URL at which nothing listens', check: 'public-url', state: 'failed', fix: /DNS/ },
    plant: () => ({ settings: { publicUrl: 'http://127.0.0.1:9' } }),
  },
  {
    ...{ title: 'a certificate that no browser knows', check: 'public-url', state: 'failed', fix: /certificate/ },
    plant: (running) => through(proxyTo(running), createCertificate(['localhost'])),
  },
  {
    ...{ title: 'a page of somebody else', check: 'public-url', state: 'failed', fix: /pass every path/ },
    plant: () => through((_asked, response) => response.writeHead(200).end('<h1>Welcome to nginx!</h1>')),
  },
  {
    ...{ title: 'another Quittance', check: 'public-url', state: 'failed', fix: /QUITTANCE_PUBLIC_URL/ },
    plant: () => through(proxyTo(trusting)),
  },
  {
    ...{ title: 'a proxy that holds streams back', check: 'streams', state: 'failed', fix: /proxy_buffering/ },
    plant: (running) => through(proxyTo(running, { isGathering: true })),
  },
  {
    ...{ title: 'a proxy that nobody trusts', check: 'proxy', state: 'failed', fix: /QUITTANCE_TRUST_PROXY/ },
    plant: (running) => through(proxyTo(running)),
  },
  {
    ...{ title: 'trust in everybody', check: 'proxy', state: 'failed', fix: /QUITTANCE_TRUST_PROXY/ },
    plant: () => ({ settings: { trustProxy: ['0.0.0.0/0'] } }),
  },
];

test.each(FAULTS)('$title is named by $check', (fault) => expectNamed(service, fault));

test.each([
  ['that says nothing of its clients', 'drop', 'X-Forwarded-For'],
  ['that passes on what clients say', 'keep', 'append'],
] as const)('a trusted proxy %s is named', (_title, forwarded, word) =>
  expectNamed(trusting, {
    ...{ title: '', check: 'proxy', state: 'failed', fix: new RegExp(word) },
    plant: (running) => through(proxyTo(running, { forwarded })),
  }),
);

test('a proxy that is set up as it should be is good, and so is no proxy at all', async () => {
  const { settings, undo } = await through(proxyTo(trusting));
  const view = await examine(trusting, { settings });
  await undo();
  const direct = await examine(service);
  for (const name of ['service', 'public-url', 'streams', 'proxy']) {
    expect(told(view, name), name).toMatchObject({ state: 'good' });
    expect(told(direct, name), name).toMatchObject({ state: 'good' });
  }
});

test('a machine that is busy while the events arrive is not taken for a proxy that holds them back', async () => {
  let probes = 0;
  const { settings, undo } = await through((asked, response) => {
    probes += 1;
    proxyTo(service, { isGathering: probes === 1 })(asked, response);
  });
  const view = await examine(service, { settings });
  await undo();
  expect(told(view, 'streams')).toMatchObject({ state: 'good' });
});

test('a service that does not run is not blamed on the proxy', async () => {
  const { settings, undo } = await through(proxyTo(service));
  await service.stopService();
  const view = await examine(service, { settings });
  await service.restart();
  await undo();
  for (const name of ['service', 'public-url', 'streams', 'proxy']) {
    expect(told(view, name), name).toMatchObject({ state: 'skipped' });
  }
});

test('the probe is there for nobody who does not know the ledger', async () => {
  const { body } = await call(`${service.url}/nowhere`);
  for (const headers of [
    {},
    { 'x-quittance-probe': `${'0'.repeat(32)}.${'0'.repeat(64)}` },
    { 'x-quittance-probe': 'x' },
  ]) {
    const answer = await call(`${service.url}/probe`, { headers });
    expect(answer).toMatchObject({ status: 404, body: { code: body.code } });
  }
});
