import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../../config/config.ts';
import { decodeId, NIL_UUID } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { commandActor } from '../../operator/actor.ts';
import { addEndpoint, readNewEndpoint } from '../../operator/webhooks/add-endpoint.ts';
import { enableEndpoint } from '../../operator/webhooks/enable-endpoint.ts';
import { listEndpoints } from '../../operator/webhooks/list-endpoints.ts';
import { updateEndpoint } from '../../operator/webhooks/update-endpoint.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';
import { recordPing } from './record-ping.ts';
import type { FeedEvent, Until } from './until.ts';

/** By this it is known again: endpoints are never deleted, so one is enough. */
const DESCRIPTION = 'made by "quittance trigger endpoint.disabled"';

const ACTOR = commandActor('trigger');

/** Its own server, whatever this machine lets endpoints of others have. */
const LOCAL = { webhooks: { localTargets: true } };

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
    await recordPing(sandbox, decodeId('whe', endpointId) ?? NIL_UUID);
    return await until(({ type, data }) => type === 'endpoint.disabled' && data['endpointId'] === endpointId);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function prepareEndpoint({ db, projectId }: Sandbox, config: Config, url: string): Promise<string> {
  const now = () => unixMs(systemClock.now());
  const { data } = await listEndpoints({ db, now }, ACTOR, { projectId });
  const known = data.find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    const { endpointId } = known;
    await updateEndpoint({ db, now, config: LOCAL }, ACTOR, { endpointId, url });
    await enableEndpoint({ db, now }, ACTOR, { endpointId });
    return endpointId;
  }
  const deps = { db, now, random: randomBytes, note: () => undefined };
  const wanted = { ...readNewEndpoint({ events: ['ping'], description: DESCRIPTION }), projectId, url };
  return (await addEndpoint({ ...deps, config: { ...config, databaseUrl: null, ...LOCAL } }, ACTOR, wanted)).endpointId;
}
