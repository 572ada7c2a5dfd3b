import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../../config/config.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import type { Actor } from '../../operator/actor.ts';
import { addWebhookEndpoint } from '../../operator/webhooks/add-endpoint.ts';
import { enableEndpoint } from '../../operator/webhooks/enable-endpoint.ts';
import { systemClock } from '../../runtime/clock.ts';
import { changeWebhookEndpoint, listWebhookEndpoints } from '../../store/outbox/webhook-endpoints.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import { openSandboxKeys } from '../sandbox/sandbox-keys.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';
import { recordPing } from './record-ping.ts';
import type { FeedEvent, Until } from './until.ts';

/** By this it is known again: endpoints are never deleted, so one is enough. */
const DESCRIPTION = 'made by "quittance trigger endpoint.disabled"';

const ACTOR: Actor = { kind: 'cli', name: 'trigger', role: 'owner' };

/** Has an endpoint of its own answer 410 to a ping, for which the service disables it. */
export async function disableEndpoint(sandbox: Sandbox, config: Config, until: Until): Promise<FeedEvent> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(410, { connection: 'close' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const endpointId = await prepareEndpoint(sandbox, config, `http://127.0.0.1:${port}/gone`);
    await recordPing(sandbox);
    return await until(({ type, data }) => type === 'endpoint.disabled' && data['endpointId'] === endpointId);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function prepareEndpoint({ db, projectUuid: projectId }: Sandbox, config: Config, url: string): Promise<string> {
  const now = () => unixMs(systemClock.now());
  const to = { url, description: DESCRIPTION, eventTypes: ['ping'] };
  const known = (await listWebhookEndpoints(db, projectId)).find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    await changeWebhookEndpoint(db, known.id, to);
    const endpointId = encodeId('whe', known.id);
    await enableEndpoint({ db, now }, ACTOR, { endpointId });
    return endpointId;
  }
  const id = uuidV7(now(), randomBytes(10));
  const deps = { db, keyRing: await openSandboxKeys(config), now: now(), random: randomBytes };
  await addWebhookEndpoint(deps, { ...to, id, projectId, secret: createWebhookSecret(randomBytes) });
  return encodeId('whe', id);
}
