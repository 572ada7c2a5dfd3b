import { type EventType, MISSABLE_TYPES } from '../../domain/event.ts';
import { NIL_UUID } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { resolveAlarms } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import {
  enableWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from '../../store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { refuseTooMany } from './read-webhook-url.ts';
import { lockWebhookEndpoint, refuseAdapter, selectEndpoint } from './select-endpoint.ts';
import type { EnabledEndpointView } from './views.ts';
import { countUnplanned, findPositionAt, hastenDeliveries, notifyDispatchers } from './waiting-deliveries.ts';

/** A transaction takes this many, in half a second. */
const BATCH = 20_000;
/** A higher count is only "many"; counting up to here takes about a second. */
const MAX_MISSED = 100_000;
/** A transaction that began before the endpoint was disabled plans nothing for it when it ends after. */
const MARGIN_MS = 60_000;

type Deps = { db: Database; now(): UnixMs };

/** Lets an endpoint be attempted, forgets its failures, closes its alarm, and makes what waits for it due at once. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function enableEndpoint(
  { db, now }: Deps,
  actor: Actor,
  { endpointId }: { endpointId: string },
): Promise<EnabledEndpointView> {
  // Before it is attempted again, so that events of one invoice find themselves in their order.
  const hastened = await hasten({ db, now }, (await selectEndpoint(db, actor, endpointId)).id);
  const endpoint = await db.transaction(async (tx) => {
    const found = await selectEndpoint(tx, actor, endpointId, lockWebhookEndpoint);
    if (actor.kind === 'key') refuseAdapter(found);
    if (found.disabledAt !== null) refuseTooMany(await listWebhookEndpoints(tx, found.projectId), false);
    await enableWebhookEndpoint(tx, found.id);
    await resolveAlarms(tx, found.network, 'webhook-disabled', endpointId);
    await notifyDispatchers(tx);
    if (found.disabledAt === null && hastened === 0) return found;
    const detail = { disabledReason: found.disabledReason, hastened };
    await recordActions(tx, actor, now(), [
      { projectId: found.projectId, action: 'webhook.enabled', subject: endpointId, detail },
    ]);
    return found;
  });
  const { disabledAt, disabledReason } = endpoint;
  const from = unixMs(Math.max(0, (disabledAt ?? 0) - MARGIN_MS));
  const missed = disabledAt === null ? 0 : await countMissed(db, endpoint, from);
  return {
    ...{ endpointId, status: 'active', disabledAt: disabledAt && toIso(disabledAt), disabledReason, hastened },
    ...{ missed, isMissedMore: missed >= MAX_MISSED },
    // Times of the command have the form that it reads.
    replay:
      missed === 0
        ? null
        : say`${{ command: 'deliveries replay', input: { endpoint: endpointId, from: toIso(from), status: 'missing' } }}`,
  };
}

async function hasten({ db, now }: Deps, endpointId: string): Promise<number> {
  let hastened = 0;
  for (let after = NIL_UUID; ; ) {
    const ids = await hastenDeliveries(db, endpointId, now(), { after, limit: BATCH });
    hastened += ids.length;
    if (ids.length < BATCH) return hastened;
    after = ids.reduce((a, b) => (a > b ? a : b));
  }
}

/** The types of which this endpoint misses an event that was never planned for it. */
export function missableTypes(endpoint: Pick<WebhookEndpoint, 'eventTypes'>): EventType[] {
  return MISSABLE_TYPES.filter((type) => endpoint.eventTypes?.includes(type) ?? true);
}

async function countMissed(db: Database, endpoint: WebhookEndpoint, from: UnixMs): Promise<number> {
  const first = await findPositionAt(db, endpoint.projectId, from);
  return countUnplanned(db, endpoint, first, missableTypes(endpoint), MAX_MISSED);
}
