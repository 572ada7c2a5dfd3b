import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../../config/config.ts';
import { decodeId, NIL_UUID } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { commandActor } from '../../operator/actor.ts';
import { enableEndpoint } from '../../operator/subjects/webhook-sending.ts';
import { addEndpoint, listEndpoints, updateEndpoint } from '../../operator/subjects/webhooks.ts';
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
  const { data } = await listEndpoints.run({ db, now }, ACTOR, { projectId });
  const known = data.find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    const { endpointId } = known;
    await updateEndpoint.run({ db, now, config: LOCAL }, ACTOR, { endpointId, url });
    await enableEndpoint.run({ db, now }, ACTOR, { endpointId });
    return endpointId;
  }
  const deps = { db, now, random: randomBytes, note: () => undefined };
  const wanted = addEndpoint.read({ projectId, url, events: ['ping'], description: DESCRIPTION }, now());
  return (await addEndpoint.run({ ...deps, config: { ...config, databaseUrl: null, ...LOCAL } }, ACTOR, wanted))
    .endpointId;
}
