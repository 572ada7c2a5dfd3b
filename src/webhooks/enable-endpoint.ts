import { EVENT_TYPES, type EventType } from '../domain/event.ts';
import { encodeId, NIL_UUID } from '../domain/ids.ts';
import { type UnixMs, unixMs } from '../domain/time.ts';
import { resolveAlarms } from '../store/alarms.ts';
import type { Database } from '../store/database.ts';
import { findPositionAt } from '../store/delivery-desk.ts';
import { countUnplanned, hastenDeliveries, notifyDispatchers } from '../store/delivery-replay.ts';
import { lockWebhookEndpoint } from '../store/endpoint-desk.ts';
import { enableWebhookEndpoint, type WebhookEndpoint } from '../store/webhook-endpoints.ts';

export type Enabled = {
  /** As it was before. */
  endpoint: WebhookEndpoint;
  /** How many deliveries that waited for their next attempt are due now. */
  hastened: number;
  /** Events that were not planned while it was disabled, counted up to 100,000; those since `from`. */
  missed: { count: number; from: UnixMs } | null;
};

/** One transaction takes so many: half a second. */
const BATCH = 20_000;
/** Beyond, the count is only "many"; counting them takes about a second. */
export const MAX_MISSED = 100_000;
/** A transaction that began before the endpoint was disabled plans nothing for it when it ends after. */
const MARGIN_MS = 60_000;

/** Lets an endpoint be attempted, forgets its failures, closes its alarm, and makes what waits for it due at once. `null`: unknown. */
export async function enableEndpoint(
  { db, now }: { db: Database; now: () => UnixMs },
  endpointId: string,
): Promise<Enabled | null> {
  // Before it is attempted again, so that events of one invoice find themselves in their order.
  const hastened = await hasten({ db, now }, endpointId);
  const endpoint = await db.transaction(async (tx) => {
    const found = await lockWebhookEndpoint(tx, endpointId);
    if (found === null) return null;
    await enableWebhookEndpoint(tx, endpointId);
    await resolveAlarms(tx, found.network, 'webhook-disabled', encodeId('whe', endpointId));
    await notifyDispatchers(tx);
    return found;
  });
  return endpoint && { endpoint, hastened, missed: await findMissed(db, endpoint) };
}

async function hasten({ db, now }: { db: Database; now: () => UnixMs }, endpointId: string): Promise<number> {
  let hastened = 0;
  for (let after = NIL_UUID; ; ) {
    const ids = await hastenDeliveries(db, endpointId, now(), { after, limit: BATCH });
    hastened += ids.length;
    if (ids.length < BATCH) return hastened;
    after = ids.reduce((a, b) => (a > b ? a : b));
  }
}

/** The types of which an event that was never planned for an endpoint is missed there: a ping is for one, an old disabling for nobody. */
export function missableTypes(endpoint: Pick<WebhookEndpoint, 'event_types'>): EventType[] {
  return EVENT_TYPES.filter(
    (type) => type !== 'ping' && type !== 'endpoint.disabled' && (endpoint.event_types?.includes(type) ?? true),
  );
}

async function findMissed(db: Database, endpoint: WebhookEndpoint): Promise<Enabled['missed']> {
  if (endpoint.disabled_at === null) return null;
  const from = unixMs(Math.max(0, endpoint.disabled_at - MARGIN_MS));
  const first = await findPositionAt(db, endpoint.project_id, from);
  const count = await countUnplanned(db, { endpoint, first, types: missableTypes(endpoint), limit: MAX_MISSED });
  return { count, from };
}
