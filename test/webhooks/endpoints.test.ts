import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createHealthProblems, createLiveness } from '../../src/core/payments/health-problems.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createLoopHealth } from '../../src/core/runtime/loop.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import {
  changeWebhookEndpoint,
  disableWebhookEndpoint,
  enableWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
} from '../../src/core/store/outbox/webhook-endpoints.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { storeAdapter } from '../../src/faces/operator/subjects/adapters.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createWorld, type World } from './fixture.ts';

let world: World;
let db: Database;
beforeAll(async () => {
  world = await createWorld();
  db = world.openDatabase();
});
afterAll(() => world.end());

test('an endpoint takes the network of its project, and adding it again changes nothing', async () => {
  const deps = { db, keyRing: TEST_KEY_RING, now: unixMs(world.clock.now()), random: randomBytes };
  const endpoint = {
    id: randomUUID(),
    projectId: world.projectId,
    url: 'https://shop.example/hook',
    secret: createWebhookSecret(randomBytes),
  };
  expect(await addWebhookEndpoint(deps, endpoint)).toBe(true);
  expect(await addWebhookEndpoint(deps, { ...endpoint, url: 'https://other.example/' })).toBe(false);
  expect(await listWebhookEndpoints(db, world.projectId)).toMatchObject([
    {
      id: endpoint.id,
      network: 'devnet',
      url: endpoint.url,
      eventTypes: null,
      failingSince: null,
      disabledAt: null,
    },
  ]);
  expect(await listWebhookEndpoints(db, randomUUID())).toEqual([]);
});

test('no column holds a secret as it is', async () => {
  const endpoint = await world.addEndpoint('https://sealed.example/');
  const rows = await world.sql(
    'select to_jsonb(w) as endpoint, to_jsonb(s) as secret, encode(s.sealed, $2) as sealed from webhook_endpoints w join webhook_secrets s on s.endpoint_id = w.id where w.id = $1',
    [endpoint.id, 'base64'],
  );
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain(endpoint.secret.slice('whsec_'.length, -1));
});

test('another URL forgets what failed at the former one; enabling forgets it too', async () => {
  const endpoint = await world.addEndpoint('https://old.example/');
  const fail = () =>
    world.sql(
      `update webhook_endpoints set failing_since = now(), consecutive_failures = 7, open_until = now() where id = $1`,
      [endpoint.id],
    );
  await fail();
  const place = { id: endpoint.id, projectId: world.projectId };
  const same = { url: 'https://old.example/', description: 'shop', eventTypes: ['invoice.paid'] };
  expect(await changeWebhookEndpoint(db, place, same)).toBe(true);
  expect(await findWebhookEndpoint(db, endpoint.id)).toMatchObject({ consecutiveFailures: 7, description: 'shop' });
  await changeWebhookEndpoint(db, place, { ...same, url: 'https://new.example/' });
  expect(await findWebhookEndpoint(db, endpoint.id)).toMatchObject({
    url: 'https://new.example/',
    eventTypes: ['invoice.paid'],
    consecutiveFailures: 0,
    failingSince: null,
    openUntil: null,
  });
  await fail();
  expect(await disableWebhookEndpoint(db, endpoint.id, unixMs(world.clock.now()), 'by hand')).toBe(true);
  expect(await disableWebhookEndpoint(db, endpoint.id, unixMs(world.clock.now()), 'again')).toBe(false);
  expect(await findWebhookEndpoint(db, endpoint.id)).toMatchObject({ disabledReason: 'by hand' });
  expect(await enableWebhookEndpoint(db, endpoint.id)).toBe(true);
  expect(await findWebhookEndpoint(db, endpoint.id)).toMatchObject({
    disabledAt: null,
    disabledReason: null,
    failingSince: null,
    consecutiveFailures: 0,
  });
  expect(await enableWebhookEndpoint(db, randomUUID())).toBe(false);
});

test('the rate of a price is needed until the price is disabled, even if an earlier release disabled its callbacks', async () => {
  const id = randomUUID();
  const at = unixMs(Date.now());
  const source = {
    url: 'https://rates.example/',
    path: '/eur',
    timePath: null,
    min: '0.8',
    max: '1.2',
    maxAgeMs: 60_000,
  };
  const rate = {
    ...{ rateMicro: 1_000_000n, rateSource: JSON.stringify(source), readMicro: 1_000_000n, readAt: at },
    ...{ rateMinMicro: 800_000n, rateMaxMicro: 1_200_000n },
  };
  const row = {
    ...rate,
    id,
    projectId: world.projectId,
    kind: 'price',
    currency: 'EUR',
    secret: 'x'.repeat(32),
  } as const;
  const deps = { keyRing: TEST_KEY_RING, now: at, random: randomBytes };
  await db.transaction((tx) => storeAdapter(tx, deps, row));
  await world.sql('update webhook_endpoints set disabled_at = now() where id = $1', [id]);
  await world.sql(`insert into leases (name, holder, epoch, expires_at) values ('rates', 'gone', 1, now())`);
  const log = createLogger({ level: 'silent' });
  const liveness = createLiveness({ troubles: createHealthProblems({ log }), loops: createLoopHealth() });
  let ms = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (ms += 5000));
  onTestFinished(() => clock.mockRestore());
  for (let looks = 0; looks < 10; looks += 1) await liveness.look(db);
  expect(liveness.isStalled('rates')).toBe(true);
  await revokeApiKey(db, id, at);
  await liveness.look(db);
  expect(liveness.isStalled('rates')).toBe(false);
});
