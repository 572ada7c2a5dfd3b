import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../../config.ts';
import { decodeId, encodeId, uuidV7 } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Database } from '../../store/database.ts';
import { changeWebhookEndpoint, listWebhookEndpoints } from '../../store/webhook-endpoints.ts';
import { addWebhookEndpoint } from '../../webhooks/add-endpoint.ts';
import { enableEndpoint } from '../../webhooks/enable-endpoint.ts';
import { createWebhookSecret } from '../../webhooks/sign.ts';
import { openSandboxKeys } from '../sandbox/keys.ts';
import type { SandboxFile } from '../sandbox/sandbox-file.ts';
import { recordPing } from './record-ping.ts';
import type { Told, Until } from './until.ts';

/** By this it is known again: endpoints are never deleted, so one is enough. */
const DESCRIPTION = 'made by "quittance trigger endpoint.disabled"';

/** Has an endpoint of its own answer 410 to a ping, for which the service disables it. */
export async function disableEndpoint(
  db: Database,
  { config, sandbox, until }: { config: Config; sandbox: SandboxFile; until: Until },
): Promise<Told> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(410, { connection: 'close' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const endpointId = await prepareEndpoint(db, config, sandbox.projectId, `http://127.0.0.1:${port}/gone`);
    await recordPing(db, sandbox.projectId);
    return await until(({ type, data }) => type === 'endpoint.disabled' && data['endpointId'] === endpointId);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function prepareEndpoint(db: Database, config: Config, project: string, url: string): Promise<string> {
  const projectId = decodeId('prj', project);
  if (projectId === null) throw new Error(`not a project id: ${project}`);
  const now = () => unixMs(systemClock.now());
  const to = { url, description: DESCRIPTION, eventTypes: ['ping'] };
  const known = (await listWebhookEndpoints(db, projectId)).find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    await changeWebhookEndpoint(db, known.id, to);
    await enableEndpoint({ db, now }, known.id);
    return encodeId('whe', known.id);
  }
  const id = uuidV7(now(), randomBytes(10));
  const deps = { db, keyRing: await openSandboxKeys(config), now: now(), random: randomBytes };
  await addWebhookEndpoint(deps, { ...to, id, projectId, secret: createWebhookSecret(randomBytes) });
  return encodeId('whe', id);
}
