import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEndpoints } from '../../packages/sdk/src/endpoints.ts';
import { webhooks } from '../../packages/sdk/src/index.ts';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { addKey } from '../contract/keys.ts';
import { type Receiver, startReceiver } from '../contract/webhook-receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { json, startAnsweringServer } from './answering-server.ts';
import { SDK_KEY } from './sdk-key.ts';

let service: TestService;
let receiver: Receiver;
let server: Awaited<ReturnType<typeof startAnsweringServer>>;
let apiKey: string;
beforeAll(async () => {
  [service, receiver, server] = await Promise.all([startTestService(), startReceiver(), startAnsweringServer()]);
  ({ apiKey } = await addKey(service.db, service.project.id, { scopes: SCOPES }));
});
afterAll(async () => {
  await service.stop();
  await receiver.stop();
  await server.stop();
});

const ID = 'whe_01k2m9t0b3e8zr6v5x4c7d1f2g';

test('an endpoint is made, tested, changed, rotated, disabled, enabled, read and listed', async () => {
  const endpoints = createEndpoints({ apiKey, baseUrl: service.url });
  const url = `http://127.0.0.1:${receiver.port}/sdk`;
  const known = await endpoints.list();
  const { endpointId, secret } = await endpoints.create({ url, events: ['ping', 'invoice.paid'] });
  expect(await endpoints.test(endpointId)).toMatchObject({ isDelivered: true, status: 204 });
  const [ping] = receiver.at('/sdk');
  const event = await webhooks.verify(ping?.raw ?? '', ping?.headers ?? {}, secret ?? '');
  expect(event.type).toBe('ping');

  expect(await endpoints.update(endpointId, { events: ['all'], description: 'shop' })).toMatchObject({
    eventTypes: null,
    description: 'shop',
  });
  const rotated = await endpoints.rotate(endpointId, { overlap: '1h' });
  expect(rotated.secret).toMatch(/^whsec_/);
  expect(rotated.secret).not.toBe(secret);
  expect(await endpoints.disable(endpointId, { reason: 'moves house' })).toMatchObject({ status: 'disabled' });
  await expect(endpoints.disable(endpointId)).rejects.toMatchObject({ code: 'ENDPOINT_CONFLICT', status: 409 });
  expect(await endpoints.enable(endpointId)).toMatchObject({ status: 'active' });
  expect((await endpoints.get(endpointId)).secrets).toHaveLength(2);
  expect((await endpoints.list()).length).toBe(known.length + 1);
  await expect(endpoints.create({ url })).rejects.toMatchObject({ code: 'ENDPOINT_CONFLICT' });
  await expect(endpoints.create({ url: 'nowhere' })).rejects.toMatchObject({
    errors: [expect.objectContaining({ field: 'url' })],
  });
});

test('what is no endpoint, or another one, is an error, and a wrong id is not sent', async () => {
  const endpoints = createEndpoints({ apiKey: SDK_KEY, baseUrl: server.url });
  const strange = { code: 'UNEXPECTED_ANSWER' };
  for (const body of [{}, { endpointId: 'whe_01k2m9t0b3e8zr6v5x4c7d1f2h' }, { endpointId: null }]) {
    server.answer(json(200, body));
    await expect(endpoints.get(ID)).rejects.toMatchObject(strange);
    await expect(endpoints.rotate(ID)).rejects.toMatchObject(strange);
  }
  server.answer(json(200, { data: {} }));
  await expect(endpoints.list()).rejects.toMatchObject(strange);
  server.answer(json(201, { secret: 'whsec_' }));
  await expect(endpoints.create({ url: 'https://shop.example.com/' })).rejects.toMatchObject(strange);
  const seen = server.seen.length;
  await expect(endpoints.get('inv_01k2m9t0b3e8zr6v5x4c7d1f2g')).rejects.toThrow('the id must begin with whe_');
  await expect(endpoints.enable('whe_../keys')).rejects.toThrow(TypeError);
  expect(server.seen.length).toBe(seen);
});
