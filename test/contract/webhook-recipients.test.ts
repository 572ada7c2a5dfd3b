import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { insertEvents } from '../../src/core/store/outbox/events.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { runCli } from '../cli/run-cli.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import { createTestProject, eventually, type Json } from '../support/service.ts';
import { order } from './ask.ts';
import { type Hit, startReceiver } from './webhook-receiver.ts';
import {
  command,
  confirmingInvoices,
  deliver,
  deliveriesOf,
  endpointOf,
  feedOf,
  finish,
  hitsAt,
  judge,
  judgeAll,
  keepUp,
  oneEvent,
  openShop,
  startWorld,
  stopWorld,
  typesAt,
  untilHits,
  type World,
} from './webhook-shop.ts';

const SECOND = 1000;

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
beforeEach(() => keepUp(world.service));
// Deliveries left by a test succeed during a later one, and don't disturb it.
afterEach(() => world.receiver.answerWell());
afterAll(() => stopWorld(world));

test('each endpoint gets the types of its filter; the feed has all', async () => {
  const shop = await openShop(world, ['all', 'paid', 'none'], { paid: ['invoice.paid'], none: ['invoice.expired'] });
  deliver(world);
  await finish(shop, await confirmingInvoices(shop, 1));
  await untilHits(shop, 'all', 2);
  await untilHits(shop, 'paid', 1);
  expect(typesAt(shop, 'all')).toEqual(['invoice.confirming', 'invoice.paid']);
  expect(hitsAt(shop, 'paid').map(({ body }) => [body.type, body.sequence])).toEqual([['invoice.paid', 2]]);
  expect((await feedOf(shop)).events.map(({ type }) => type)).toEqual(['invoice.confirming', 'invoice.paid']);
  const [, { id }] = (await feedOf(shop)).events as [Json, Json];
  expect(await deliveriesOf(world, id)).toHaveLength(2);
});

test('events of one project reach neither the endpoints nor the feed of another', async () => {
  const [mine, theirs] = [await openShop(world, ['a', 'b']), await openShop(world, ['a', 'b'])];
  deliver(world);
  const [own = ''] = await confirmingInvoices(mine, 1);
  const [foreign = ''] = await confirmingInvoices(theirs, 1);
  await finish(mine, [own]);
  await finish(theirs, [foreign]);
  for (const [shop, invoiceId] of [
    [mine, own],
    [theirs, foreign],
  ] as const) {
    for (const name of ['a', 'b']) {
      const hits = await untilHits(shop, name, 2);
      expect(hits.map(({ body }) => [body.projectId, body.data.invoiceId])).toEqual([
        [shop.project.projectId, invoiceId],
        [shop.project.projectId, invoiceId],
      ]);
    }
    expect((await feedOf(shop)).events.map(({ data }) => data.invoiceId)).toEqual([invoiceId, invoiceId]);
  }
});

test('during a rotation there are two signatures, of which each secret verifies one; after its end only the new one signs', async () => {
  const shop = await openShop(world, ['hook']);
  const { whe, secret: former } = endpointOf(shop, 'hook');
  const { secret, formerSecretEndsAt } = await command(world.service, ['webhook', 'rotate', whe, '--overlap', '24h']);
  const { clock } = deliver(world);
  const [invoiceId = ''] = await confirmingInvoices(shop, 1);
  const [during] = (await untilHits(shop, 'hook', 1)) as [Hit];
  expect(during.headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  expect([judge(former, during), judge(secret, during)]).toEqual([during.body, during.body]);
  clock.moveTo(Date.parse(formerSecretEndsAt) + SECOND);
  await finish(shop, [invoiceId]);
  const [, after] = (await untilHits(shop, 'hook', 2)) as [Hit, Hit];
  expect(after.headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  expect(judge(secret, after)).toEqual(after.body);
  expect(() => judge(former, after)).toThrow();
  endpointOf(shop, 'hook').secret = secret;
});

test('a secret that leaked ends at once with an overlap of 0', async () => {
  const shop = await openShop(world, ['hook']);
  const { secret } = await command(world.service, [
    'webhook',
    'rotate',
    endpointOf(shop, 'hook').whe,
    '--overlap',
    '0',
  ]);
  deliver(world);
  await confirmingInvoices(shop, 1);
  const [hit] = (await untilHits(shop, 'hook', 1)) as [Hit];
  expect(hit.headers['webhook-signature']).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  expect(judge(secret, hit)).toEqual(hit.body);
  endpointOf(shop, 'hook').secret = secret;
});

test.each([
  ['four bytes', '😀'.repeat(100)],
  ['escapes', '\u0001'.repeat(200)],
  ['letters of three bytes', '\u2028'.repeat(200)],
])('a body with the longest externalId in %s is under 20 KB', async (_of, externalId) => {
  const shop = await openShop(world, ['hook']);
  deliver(world);
  await confirmingInvoices(shop, 1, () => order({ externalId }));
  const [hit] = (await untilHits(shop, 'hook', 1)) as [Hit];
  expect(hit.raw.length).toBeLessThan(20_000);
  expect(hit.body.data.externalId).toBe(externalId);
});

test('ping and endpoint.disabled have the envelope, the headers and the signature of every event, and stand in the feed', async () => {
  const shop = await openShop(world, ['gone', 'hook']);
  world.receiver.answer(endpointOf(shop, 'gone').path, (response) => response.writeHead(410).end());
  await command(world.service, ['webhook', 'test', endpointOf(shop, 'hook').whe]);
  deliver(world);
  await confirmingInvoices(shop, 1);
  const hits = await untilHits(shop, 'hook', 3);
  expect(hits.map(({ body }) => body.type).sort()).toEqual(['endpoint.disabled', 'invoice.confirming', 'ping']);
  const { text } = await feedOf(shop);
  for (const hit of hits) {
    const { body, headers, raw } = hit;
    expect(Object.keys(body)).toEqual(['id', 'type', 'timestamp', 'projectId', 'network', 'sequence', 'data']);
    expect(body).toMatchObject({ projectId: shop.project.projectId, network: 'TRON', sequence: 1 });
    expect(headers).toMatchObject({ 'webhook-id': body.id, 'webhook-protocol': 'v2' });
    expect(text).toContain(raw.toString('utf8'));
    expect(judge(endpointOf(shop, 'hook').secret, hit)).toEqual(body);
  }
});

describe('targets', () => {
  /** Writes an event with deliveries to these URLs as the service does, and returns its id. */
  async function eventTo(network: Network, urls: string[]): Promise<string> {
    const { id: projectId } = await createTestProject(world.service.db, { network });
    for (const url of urls) {
      await addTestEndpoint(world.service.db, { projectId, url, secret: createWebhookSecret(randomBytes) });
    }
    const id = uuidV7(world.service.clock.now(), randomBytes(10));
    const event = { id, projectId, type: 'transfer.unmatched' as const, invoiceId: null, transferId: null };
    const body = JSON.stringify({ id: encodeId('evt', id) });
    await insertEvents(world.service.db, network, [{ ...event, sequence: 1, body }], unixMs(world.service.clock.now()));
    return encodeId('evt', id);
  }

  /** Waits until each delivery of the event was attempted. */
  const attemptsOf = (eventId: string, urls: string[]): Promise<Json[]> =>
    eventually(
      async () => await deliveriesOf(world, eventId),
      (all: Json[]) => all.length === urls.length && all.every(({ attempts }) => attempts.length > 0),
    );

  const onThisMachine = (port: number) =>
    [
      ...['http://127.0.0.1', 'http://localhost', 'http://[::1]', 'http://127.1', 'http://0.0.0.0'],
      ...[
        'https://127.0.0.1',
        'https://localhost',
        'https://[::1]',
        'https://[::ffff:127.0.0.1]',
        'https://2130706433',
      ],
      ...['https://0.0.0.0', 'https://[::]', 'https://0x7f.1', 'https://localhost.'],
    ].map((origin) => `${origin}:${port}/`);
  const NOT_PUBLIC = [
    ...['https://10.0.0.1/', 'https://172.16.0.1:8443/', 'https://192.168.1.1/', 'https://100.64.0.1/'],
    ...['https://169.254.169.254/', 'https://[fe80::1]/', 'https://[fd00::1]/', 'https://[64:ff9b::10.0.0.1]/'],
  ];
  const PORTS = ['https://8.8.8.8:80/', 'https://8.8.8.8:22/', 'https://8.8.8.8:444/', 'https://8.8.8.8:1023/'];

  const expectRefusals = (deliveries: Json[]) => {
    for (const { url, status, attempts } of deliveries) {
      expect(attempts[0], url).toMatchObject({ status: null, error: expect.stringMatching(/^target_refused/) });
      expect(status, url).toBe('pending');
    }
  };

  test('of a live project are https, public and on port 443 or from 1024: nothing else gets a connection', async () => {
    const local = await startReceiver();
    onTestFinished(local.stop);
    const urls = [...onThisMachine(local.port), ...NOT_PUBLIC, ...PORTS, 'http://8.8.8.8/', 'http://8.8.8.8:8080/'];
    deliver(world, { localTargets: true });
    const eventId = await eventTo('mainnet', urls);
    expectRefusals(await attemptsOf(eventId, urls));
    expect(local.connections()).toBe(0);
  });

  test('of a live project are the same for a test webhook by hand', async () => {
    const local = await startReceiver();
    onTestFinished(local.stop);
    const urls = [`http://127.0.0.1:${local.port}/`, `https://localhost:${local.port}/`];
    const { deliveries } = await command(world.service, ['deliveries', 'show', await eventTo('mainnet', urls)]);
    for (const { endpointId } of deliveries) {
      const env = { DATABASE_URL: world.service.connectionString, QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow' };
      const key = TEST_KEY_RING.current().bytes.toString('base64');
      const { json } = await runCli(['webhook', 'test', endpointId, '--json'], {
        env: { ...env, QUITTANCE_MASTER_KEY: key },
      });
      expect(JSON.stringify(json)).toContain('target_refused');
    }
    expect(local.connections()).toBe(0);
  });

  test('of a test project may be this machine, by http, only where the process says so; private networks never', async () => {
    const local = await startReceiver();
    onTestFinished(local.stop);
    const here = ['127.0.0.1', 'localhost', '[::1]'].map((host) => `http://${host}:${local.port}/${host}`);
    const strict = deliver(world, { localTargets: false });
    const eventId = await eventTo('devnet', here);
    expectRefusals(await attemptsOf(eventId, here));
    expect(local.connections()).toBe(0);
    await strict.stop();
    const { clock } = deliver(world, { localTargets: true });
    const elsewhere = [...NOT_PUBLIC, 'http://10.0.0.1:8080/', 'http://169.254.169.254/', 'http://[fe80::1]/'];
    expectRefusals(await attemptsOf(await eventTo('devnet', elsewhere), elsewhere));
    clock.advance(10 * SECOND);
    await eventually(
      () => deliveriesOf(world, eventId),
      (all: Json[]) => all.every(({ status }) => status === 'delivered'),
    );
    expect(local.hits()).toHaveLength(3);
  });
});

test('every delivery of this file verifies with the published package standardwebhooks, during and after a rotation too', async () => {
  const shop = await openShop(world, ['hook']);
  deliver(world);
  await oneEvent(shop);
  await untilHits(shop, 'hook', 1);
  judgeAll(world);
});
