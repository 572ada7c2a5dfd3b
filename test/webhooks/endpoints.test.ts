import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import {
  insertWebhookEndpoint,
  listWebhookEndpoints,
  updateWebhookEndpointUrl,
} from '../../src/store/webhook-endpoints.ts';
import { createWorld, type World } from './fixture.ts';

let world: World;
let db: Database;
beforeAll(async () => {
  world = await createWorld();
  db = world.openDatabase();
});
afterAll(() => world.end());

test('an endpoint takes the network of its project, and inserting it again changes nothing', async () => {
  const endpoint = {
    id: randomUUID(),
    projectId: world.projectId,
    url: 'https://shop.example/hook',
    secret: 'whsec_1',
  };
  await insertWebhookEndpoint(db, endpoint);
  await insertWebhookEndpoint(db, { ...endpoint, url: 'https://other.example/', secret: 'whsec_2' });
  expect(await world.endpoint(endpoint)).toMatchObject({ network: 'devnet', url: endpoint.url, secret: 'whsec_1' });
  expect(await listWebhookEndpoints(db, world.projectId)).toMatchObject([
    { id: endpoint.id, url: endpoint.url, secret: 'whsec_1', failing_since: null, disabled_at: null },
  ]);
  expect(await listWebhookEndpoints(db, randomUUID())).toEqual([]);
});

test('a new URL enables an endpoint that was disabled', async () => {
  const endpoint = await world.addEndpoint('https://old.example/');
  await world.sql(
    `update webhook_endpoints set failing_since = now(), disabled_at = now(), disabled_reason = 'gone' where id = $1`,
    [endpoint.id],
  );
  expect(await updateWebhookEndpointUrl(db, endpoint.id, 'https://new.example/')).toBe(true);
  expect(await world.endpoint(endpoint)).toMatchObject({
    url: 'https://new.example/',
    failing_since: null,
    disabled_at: null,
    disabled_reason: null,
  });
  expect(await updateWebhookEndpointUrl(db, randomUUID(), 'https://new.example/')).toBe(false);
});
