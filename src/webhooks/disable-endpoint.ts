import { randomUUID } from 'node:crypto';
import { newEvent } from '../domain/event.ts';
import { encodeId } from '../domain/ids.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import { pooledRandom } from '../runtime/random.ts';
import { insertOperatorActions } from '../store/access/audit-log.ts';
import { BY_ITSELF } from '../store/access/service-actor.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { countUndelivered, type FailingEndpoint } from '../store/outbox/endpoint-health.ts';
import { insertEvents } from '../store/outbox/events.ts';
import { disableWebhookEndpoint } from '../store/outbox/webhook-endpoints.ts';

/**
 * Disables an endpoint because of how it fails, in the caller's transaction: the project's other endpoints are told by an event, and
 * the operator by an alarm. Its deliveries stay as they are. `false` if it is disabled already.
 */
export async function disableEndpoint(
  tx: Sql,
  endpoint: FailingEndpoint,
  { now, reason }: { now: UnixMs; reason: string },
): Promise<boolean> {
  if (!(await disableWebhookEndpoint(tx, endpoint.id, now, reason))) return false;
  const { projectId, network, description } = endpoint;
  const endpointId = encodeId('whe', endpoint.id);
  // Path and query of the URL may hold a token.
  const origin = parseUrl(endpoint.url)?.origin ?? 'invalid URL';
  const undelivered = await countUndelivered(tx, endpoint.id);
  const data = { endpointId, description, reason, disabledAt: toIso(now), undelivered, origin };
  const told = { type: 'endpoint.disabled', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  await insertEvents(tx, network, [newEvent(told, { timestamp: now, random: pooledRandom })], now);
  const detail = `webhook endpoint ${endpointId} (${origin}) was disabled: ${reason}. ${undelivered} events wait for it: repair it, then "quittance webhook enable ${endpointId}"`;
  await raiseAlarm(tx, network, { id: randomUUID(), kind: 'webhook-disabled', subject: endpointId, detail });
  const action = {
    projectId,
    action: 'webhook.disabled',
    subject: endpointId,
    detail: { reason },
    actedAt: now,
  } as const;
  await insertOperatorActions(tx, [{ ...BY_ITSELF, ...action }]);
  return true;
}
