import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, vi } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { type DispatcherOptions, startDispatcher } from '../../src/core/webhooks/dispatcher.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { runCli } from '../cli/run-cli.ts';
import { addTestEndpoint, TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createTestProject,
  eventually,
  type Json,
  payExactly,
  startTestService,
  type TestProject,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { created, get, order } from './ask.ts';
import { type Hit, type Receiver, startReceiver } from './webhook-receiver.ts';

type Endpoint = { path: string; whe: string; secret: string };

/** A service that delivers nothing by itself, and a receiver. `endpoints` are those of every shop, by path. */
export type World = { service: TestService; receiver: Receiver; endpoints: Map<string, Endpoint> };

/** A project and its endpoints by name. */
export type Shop = { world: World; project: TestProject; endpoints: Map<string, Endpoint> };

export async function startWorld(): Promise<World> {
  const [service, receiver] = await Promise.all([
    startTestService({ config: { roles: ['api', 'watcher'] } }),
    startReceiver(),
  ]);
  return { service, receiver, endpoints: new Map() };
}

export async function stopWorld({ service, receiver }: World): Promise<void> {
  await service.stop();
  await receiver.stop();
}

/** Blocks are 3 s apart however fast they are made, so this keeps the service's clock from falling behind the chain's. */
export function keepUp({ clock, devnet }: Pick<TestService, 'clock' | 'devnet'>): void {
  clock.advance(Math.max(0, devnet.head().timestampMs - clock.now()) + 60_000);
}

/** Creates a project with an endpoint for each name, some with a filter. */
export async function openShop(
  world: World,
  names: string[],
  eventTypes: Record<string, string[]> = {},
): Promise<Shop> {
  const { db } = world.service;
  const project = await createTestProject(db);
  const shop: Shop = { world, project, endpoints: new Map() };
  for (const name of names) {
    const path = `/${project.projectId}/${name}`;
    const secret = createWebhookSecret(randomBytes);
    const url = `http://127.0.0.1:${world.receiver.port}${path}`;
    const filter = eventTypes[name] === undefined ? {} : { eventTypes: eventTypes[name] };
    const { id } = await addTestEndpoint(db, { projectId: project.id, url, secret, ...filter });
    const endpoint = { path, whe: encodeId('whe', id), secret };
    shop.endpoints.set(name, endpoint);
    world.endpoints.set(path, endpoint);
  }
  return shop;
}

export function endpointOf(shop: Shop, name: string): Endpoint {
  return shop.endpoints.get(name) ?? expect.fail(`no endpoint ${name}`);
}

/** Returns the requests that an endpoint of a shop received so far. */
export const hitsAt = (shop: Shop, name: string): Hit[] => shop.world.receiver.at(endpointOf(shop, name).path);

export const typesAt = (shop: Shop, name: string): string[] => hitsAt(shop, name).map(({ body }) => body.type);

export const untilHits = (shop: Shop, name: string, count: number): Promise<Hit[]> =>
  eventually(
    () => hitsAt(shop, name),
    (hits) => hits.length >= count,
  );

/** Delivers until the test ends, using a clock that only this test moves. */
export function deliver({ service }: World, options: Partial<DispatcherOptions> = {}) {
  let aheadMs = 0;
  const clock = {
    now: () => service.clock.now() + aheadMs,
    advance: (ms: number) => {
      aheadMs += ms;
    },
    moveTo: (time: number) => clock.advance(Math.max(0, time - clock.now())),
  };
  const dispatcher = startDispatcher({
    db: service.db,
    clock,
    log: createLogger({ level: 'silent' }),
    metrics: createMetrics(),
    random: Math.random,
    keyRing: TEST_KEY_RING,
    localTargets: true,
    pollMs: 20,
    ...options,
  });
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= dispatcher.stop();
    return stopped;
  };
  onTestFinished(stop);
  return { clock, stop };
}

/** Returns a command's `--json` output. The command must succeed unless another exit code is expected. */
export async function command(service: TestService, args: string[], exitCode = 0): Promise<Json> {
  const env = {
    DATABASE_URL: service.connectionString,
    QUITTANCE_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
    QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
  };
  const { code, json, stderr } = await runCli([...args, '--json'], { env });
  expect(code, JSON.stringify(json) + stderr).toBe(exitCode);
  return json;
}

/** Returns the deliveries that `deliveries show` lists for an event, by endpoint. */
export async function deliveriesOf({ service }: World, eventId: string): Promise<Json[]> {
  return (await command(service, ['deliveries', 'show', eventId])).deliveries;
}

/** Returns the one at an endpoint of the shop. */
export async function deliveryOf(shop: Shop, name: string, eventId: string): Promise<Json> {
  const { whe } = endpointOf(shop, name);
  return (await deliveriesOf(shop.world, eventId)).find(({ endpointId }) => endpointId === whe);
}

/** Waits until this many attempts are recorded, including the decision after the last one. */
export function untilAttempts(shop: Shop, name: string, eventId: string, count: number): Promise<Json> {
  return eventually(
    () => deliveryOf(shop, name, eventId),
    (delivery) => delivery.attempts.length >= count,
  );
}

/** Reads the shop's feed, up to 100 events. */
export async function feedOf({ world, project }: Shop): Promise<{ text: string; events: Json[] }> {
  const { text, body } = await get(world.service, '/v1/events?limit=100', project);
  return { text, events: body.data };
}

/** Pays an invoice exactly; the transfer waits for a block. */
export async function pay(service: TestService, project: TestProject, invoiceId: string): Promise<void> {
  await payExactly({ ...service, project }, invoiceId);
}

/** Creates invoices whose exact transfer is in a block, each with one event. */
export async function confirmingInvoices(shop: Shop, count: number, body: () => object = order): Promise<string[]> {
  const { world, project } = shop;
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const { invoiceId } = await created(world.service, { project, body: body() });
    await pay(world.service, project, invoiceId);
    ids.push(invoiceId);
  }
  world.service.devnet.mine();
  for (const id of ids) await untilStatus({ ...world.service, project }, id, 'CONFIRMING');
  return ids;
}

/** Makes their payments irreversible, which adds a second event each. */
export async function finish({ world, project }: Shop, invoiceIds: string[]): Promise<void> {
  world.service.devnet.mineUntilSolid();
  for (const id of invoiceIds) await untilStatus({ ...world.service, project }, id, 'PAID');
}

/** Creates one event, `invoice.confirming`. */
export async function oneEvent(shop: Shop): Promise<{ eventId: string; invoiceId: string }> {
  const [invoiceId = ''] = await confirmingInvoices(shop, 1);
  const { events } = await feedOf(shop);
  return { eventId: events.find(({ data }) => data.invoiceId === invoiceId).id, invoiceId };
}

/** Verifies with the published package at the time of the webhook's timestamp. Throws if it refuses. */
export function judge(secret: string, { raw, headers }: Hit): unknown {
  const now = vi.spyOn(Date, 'now').mockReturnValue(Number(headers['webhook-timestamp']) * 1000);
  try {
    return new Webhook(secret).verify(raw, headers as Record<string, string>);
  } finally {
    now.mockRestore();
  }
}

/** Checks everything that applies to every webhook, for all that any shop received. */
export function judgeAll({ receiver, endpoints }: World): void {
  expect(receiver.hits().length).toBeGreaterThan(0);
  for (const hit of receiver.hits()) {
    expect(judge(endpoints.get(hit.path)?.secret ?? '', hit)).toEqual(hit.body);
    expect(hit.headers).toMatchObject({ 'webhook-id': hit.body.id, 'webhook-protocol': 'v2' });
  }
}
