import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import type { Sql } from '../../store/database.ts';
import {
  type DeskAttempt,
  type DeskDelivery,
  type DeskEvent,
  findDeskAttempts,
  findDeskEvents,
  listDeliveriesOf,
} from '../../store/delivery-desk.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { diagnoseAttempt } from '../../webhooks/diagnose.ts';
import type { Diagnosis } from '../../webhooks/diagnosis.ts';
import { openNewestSecrets } from '../../webhooks/endpoint-secrets.ts';
import { formatFields, formatTable, type Result, type Terminal } from '../terminal.ts';
import { diagnosisText, statusText } from '../webhook/describe.ts';
import { findEndpoint } from '../webhook/options.ts';
import { shortAnswer } from '../webhook/test.ts';
import { withDatabase } from '../with-database.ts';
import { describeDelivery } from './describe.ts';
import { noEvent, readEventId } from './options.ts';

/** Above the endpoints that anybody has. */
const MAX_DELIVERIES = 100;
/** Of each delivery, the newest: four replays. */
const MAX_ATTEMPTS_SHOWN = 60;
/** Of an answer, in a table. */
const MAX_ANSWER = 80;

type Shown = { delivery: DeskDelivery; endpoint: WebhookEndpoint; attempts: DeskAttempt[]; diagnosis: Diagnosis[] };

/** Shows what became of an event at each endpoint, or at one: every attempt, the plan, and why the last one failed. */
export async function showDeliveries(
  terminal: Terminal,
  reference: string,
  options: { endpoint?: string },
): Promise<Result> {
  const eventId = readEventId(reference);
  return withDatabase(terminal, async ({ db, config }) => {
    const [event] = await findDeskEvents(db, [eventId]);
    if (event === undefined) throw noEvent(reference);
    // Without the keys less can be told, and everything else is worth showing.
    const keyRing = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
    // Of one moment, or an attempt that is just being recorded would stand under a delivery that does not know of it.
    const shown = await db.snapshot((tx) => readShown({ db: tx, keyRing }, event, options));
    const now = unixMs(systemClock.now());
    return {
      data: describe(event, shown),
      text: [eventText(event, shown[0]?.delivery), ...shown.map((each) => toText(each, now))].join('\n\n'),
      ...nextOf(shown, reference, options),
    };
  });
}

type Deps = { db: Sql; keyRing: KeyRing | null };

async function readShown(deps: Deps, event: DeskEvent, options: { endpoint?: string }): Promise<Shown[]> {
  const { db } = deps;
  const endpointId = options.endpoint === undefined ? null : (await findEndpoint(db, options.endpoint)).id;
  const filter = { endpointId, status: null, type: null, limit: MAX_DELIVERIES };
  const deliveries = await listDeliveriesOf(db, event.projectId, { eventId: event.id, invoiceId: null }, filter);
  const ids = deliveries.map((delivery) => delivery.endpointId);
  const attempts = await findDeskAttempts(db, event.id, ids, MAX_ATTEMPTS_SHOWN);
  const shown: Shown[] = [];
  for (const delivery of deliveries) {
    const endpoint = await findWebhookEndpoint(db, delivery.endpointId);
    if (endpoint === null) continue;
    const own = attempts.filter((attempt) => attempt.endpointId === delivery.endpointId);
    shown.push({ delivery, endpoint, attempts: own, diagnosis: await diagnoseLast(deps, event, own) });
  }
  return shown;
}

async function diagnoseLast(
  { db, keyRing }: Deps,
  event: DeskEvent,
  attempts: readonly DeskAttempt[],
): Promise<Diagnosis[]> {
  const last = attempts.at(-1);
  if (last === undefined || last.error === null) return [];
  const { status, error, answer, attemptedAt, latencyMs, endpointId } = last;
  return diagnoseAttempt({
    status,
    error,
    answer: answer === null ? null : Buffer.from(answer),
    date: null,
    attemptedAt,
    latencyMs,
    sent: { id: encodeId('evt', event.id), body: Buffer.from(event.body) },
    secrets: keyRing === null ? null : await openNewestSecrets({ db, keyRing }, endpointId),
  });
}

function describe(event: DeskEvent, shown: readonly Shown[]) {
  return {
    eventId: encodeId('evt', event.id),
    projectId: encodeId('prj', event.projectId),
    type: event.type,
    createdAt: toIso(event.createdAt),
    position: Number(event.position),
    deliveries: shown.map(({ delivery, endpoint, attempts, diagnosis }) => ({
      ...describeDelivery(delivery),
      url: endpoint.url,
      attempts: attempts.map(({ attempt, attemptedAt, latencyMs, status, error, answer }) => ({
        attempt,
        attemptedAt: toIso(attemptedAt),
        latencyMs,
        status,
        error,
        answer,
      })),
      diagnosis,
    })),
  };
}

function eventText(event: DeskEvent, delivery: DeskDelivery | undefined): string {
  const invoice = delivery?.invoiceId && `${encodeId('inv', delivery.invoiceId)} (${delivery.externalId ?? ''})`;
  return formatFields([
    ['event', encodeId('evt', event.id)],
    ['project', encodeId('prj', event.projectId)],
    ['type', event.type],
    ['created', toIso(event.createdAt)],
    ['position', String(event.position)],
    ['invoice', invoice ?? null],
  ]);
}

function toText({ delivery, endpoint, attempts, diagnosis }: Shown, now: UnixMs): string {
  const fields = formatFields([
    ['endpoint', `${encodeId('whe', endpoint.id)}, ${statusText(endpoint, now)}`],
    ['url', endpoint.url],
    ['delivery', delivery.status],
    ['finished', delivery.finishedAt && toIso(delivery.finishedAt)],
    ['plan', planText(delivery, endpoint, now)],
  ]);
  const rows = attempts.map(({ attempt, attemptedAt, latencyMs, status, error, answer }) => [
    String(attempt),
    toIso(attemptedAt),
    latencyMs === null ? '' : `${latencyMs} ms`,
    status === null ? '' : String(status),
    error ?? 'delivered',
    answer === null || answer === '' ? '' : shortAnswer(answer, MAX_ANSWER),
  ]);
  const table = formatTable(['ATTEMPT', 'AT', 'LATENCY', 'STATUS', 'RESULT', 'ANSWER'], rows);
  return [fields, table, diagnosisText(diagnosis)].filter((part) => part !== '').join('\n\n');
}

function planText(
  { status, attemptCount, maxAttempts, nextAttemptAt }: DeskDelivery,
  endpoint: WebhookEndpoint,
  now: UnixMs,
) {
  if (status === 'delivered') return null;
  if (status === 'dead') return `none: dead after ${attemptsText(attemptCount)}`;
  if (endpoint.disabled_at !== null) return 'none until the endpoint is enabled';
  const opens =
    endpoint.open_until !== null && endpoint.open_until > nextAttemptAt ? endpoint.open_until : nextAttemptAt;
  const left = Math.max(0, maxAttempts - attemptCount);
  return `next attempt ${opens <= now ? 'now' : toIso(opens)}, ${attemptsText(left)} left`;
}

function attemptsText(count: number): string {
  return count === 1 ? '1 attempt' : `${count} attempts`;
}

function nextOf(shown: readonly Shown[], reference: string, { endpoint }: { endpoint?: string }): { next?: string } {
  if (shown.length === 0) {
    return {
      next: `it was not planned for ${endpoint ?? 'any endpoint'}: quittance deliveries replay ${reference} --endpoint ${endpoint ?? 'whe_…'} sends it`,
    };
  }
  const dead = shown.find(({ delivery }) => delivery.status === 'dead');
  if (dead === undefined) return {};
  const id = encodeId('whe', dead.endpoint.id);
  if (dead.delivery.type === 'ping') return { next: `test again: quittance webhook test ${id}` };
  return { next: `when the receiver works: quittance deliveries replay ${reference} --endpoint ${id}` };
}
