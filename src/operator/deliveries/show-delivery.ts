import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { findWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { openNewestSecrets } from '../../webhooks/endpoint-secrets.ts';
import { quotePage } from '../../webhooks/web-page.ts';
import type { Actor } from '../actor.ts';
import type { KeyDeps } from '../subjects/master-keys.ts';
import { type EndpointView, selectEndpoint, viewEndpoint } from '../subjects/webhooks.ts';
import { type Diagnosis, diagnoseAttempt, diagnosePage } from '../webhooks/diagnose.ts';
import { type DeskAttempt, type DeskEvent, findDeskAttempts, listDeliveriesOf } from './delivery-desk.ts';
import { viewDelivery } from './list-deliveries.ts';
import { selectEvent } from './select-event.ts';
import type { ShownDeliveryView, ShownEventView } from './views.ts';

/** More than anybody has endpoints. */
const MAX_DELIVERIES = 100;
/** The newest attempts of each delivery: those of four replays. */
const MAX_ATTEMPTS_SHOWN = 60;

/** A delivery with how its endpoint does, and how many attempts there were: more than are shown, perhaps. */
export type ShownDelivery = { delivery: ShownDeliveryView; endpoint: EndpointView; attemptCount: number };

type Input = { eventId: string; endpoint?: string | undefined };

/** Shows the deliveries of an event to each endpoint, or to one. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function showDelivery(
  { db, now, config, note }: KeyDeps & { db: Database },
  actor: Actor,
  { eventId, endpoint }: Input,
): Promise<{ view: ShownEventView; shown: ShownDelivery[] }> {
  const event = await selectEvent(db, actor, eventId);
  // Without the keys less can be told, but the rest is worth showing.
  const keyRing = await openKeyRing(config, { mayCreate: false, warn: note });
  // A snapshot of one moment: otherwise an attempt that is just being recorded would stand under a delivery that does not know of it.
  const shown = await db.snapshot((tx) => findShown({ db: tx, keyRing, now: now() }, actor, event, endpoint));
  const view = {
    ...{ eventId, projectId: encodeId('prj', event.projectId), type: event.type, createdAt: toIso(event.createdAt) },
    ...{ position: Number(event.position), deliveries: shown.map(({ delivery }) => delivery) },
  };
  return { view, shown };
}

type Deps = { db: Sql; keyRing: KeyRing | null; now: UnixMs };

async function findShown(deps: Deps, actor: Actor, event: DeskEvent, only: string | undefined) {
  const { db, now } = deps;
  const endpointId = only === undefined ? null : (await selectEndpoint(db, actor, only)).id;
  const filter = { endpointId, status: null, type: null, limit: MAX_DELIVERIES };
  const deliveries = await listDeliveriesOf(db, event.projectId, { eventId: event.id, invoiceId: null }, filter);
  const ids = deliveries.map((delivery) => delivery.endpointId);
  const attempts = await findDeskAttempts(db, event.id, ids, MAX_ATTEMPTS_SHOWN);
  const shown: ShownDelivery[] = [];
  for (const found of deliveries) {
    const endpoint = await findWebhookEndpoint(db, found.endpointId);
    if (endpoint === null) continue;
    const own = attempts.filter((attempt) => attempt.endpointId === found.endpointId);
    const delivery = {
      ...viewDelivery(found),
      url: endpoint.url,
      attempts: own.map(({ endpointId: _, ...each }) => ({
        ...{ ...each, attemptedAt: toIso(each.attemptedAt), webPage: quotePage(each.answer) },
      })),
      diagnosis: await diagnoseLast(deps, event, own),
    };
    shown.push({ delivery, endpoint: viewEndpoint(endpoint, now), attemptCount: found.attemptCount });
  }
  return shown;
}

async function diagnoseLast(
  { db, keyRing }: Deps,
  event: DeskEvent,
  attempts: readonly DeskAttempt[],
): Promise<Diagnosis[]> {
  const last = attempts.at(-1);
  if (last === undefined) return [];
  if (last.error === null) return diagnosePage(last.answer);
  return diagnoseAttempt({
    ...last,
    answer: last.answer === null ? null : Buffer.from(last.answer),
    date: null,
    sent: { id: encodeId('evt', event.id), body: Buffer.from(event.body) },
    secrets: keyRing === null ? null : await openNewestSecrets({ db, keyRing }, last.endpointId),
  });
}
