import { isIP } from 'node:net';
import { newEvent } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { requireKeyRing } from '../../runtime/open-key-ring.ts';
import type { Database } from '../../store/db/database.ts';
import { answerOf, commandOf } from '../../store/db/rows-of.ts';
import { LEASE_MS } from '../../store/outbox/deliveries.ts';
import { recordEvents } from '../../store/outbox/events.ts';
import type { WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { openNewestSecrets } from '../../webhooks/endpoint-secrets.ts';
import { redactAnswer } from '../../webhooks/redact.ts';
import { createWebhookSender, failedAttempt } from '../../webhooks/send.ts';
import { sendSigned } from '../../webhooks/send-signed.ts';
import { quotePage, refusePage } from '../../webhooks/web-page.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import type { KeyDeps } from '../subjects/master-keys.ts';
import { diagnoseAttempt } from './diagnose.ts';
import type { UrlRules } from './read-webhook-url.ts';
import { refuseAdapter, selectEndpoint } from './select-endpoint.ts';
import type { TestedEndpointView } from './views.ts';

type Deps = KeyDeps & { db: Database; random: (size: number) => Uint8Array; config: UrlRules };

/**
 * Writes a `ping` event and sends it to one endpoint from this process, once, as a dispatcher would: disabled or failing endpoints
 * too. It is recorded like every attempt, and counts for nothing at the endpoint. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`.
 */
export async function testEndpoint(
  deps: Deps,
  actor: Actor,
  { endpointId }: { endpointId: string },
): Promise<{ view: TestedEndpointView; url: string; isDisabled: boolean }> {
  const { db, now, config } = deps;
  const endpoint = await selectEndpoint(db, actor, endpointId);
  refuseAdapter(endpoint);
  const keyRing = await requireKeyRing(config, deps.note);
  const secrets = await openNewestSecrets({ db, keyRing }, endpoint.id);
  const ping = await recordPing(deps, actor, endpoint);
  const attemptedAt = now();
  const sent = { id: encodeId('evt', ping.id), body: Buffer.from(ping.body) };
  const signing = secrets.filter(({ endsAt }) => endsAt === null || endsAt > attemptedAt).map(({ secret }) => secret);
  const result =
    signing.length === 0
      ? UNSIGNED
      : await send(config, { ...endpoint, ...sent, secrets: signing, refuse: refusePage }, attemptedAt);
  // Only the end of the process stops a test.
  if (result.kind === 'aborted') throw new Error('the attempt was stopped');
  const { status, latencyMs } = result;
  const { error, date } = result.kind === 'failed' ? result : { error: null, date: null };
  const answer = result.answer && redactAnswer(result.answer);
  const outcome = { attemptedAt, status, latencyMs, error };
  await recordTestAttempt(db, { eventId: ping.id, endpointId: endpoint.id }, now(), { ...outcome, answer });
  const view = {
    ...{ endpointId, eventId: sent.id, isDelivered: error === null, attemptedAt: toIso(attemptedAt) },
    ...{ status, latencyMs, error, ...describeConnection(endpoint.url, outcome), answer, webPage: quotePage(answer) },
    diagnosis: diagnoseAttempt({ ...outcome, answer: result.answer, date, sent, secrets }),
  };
  return { view, url: endpoint.url, isDisabled: endpoint.disabledAt !== null };
}

const UNSIGNED = failedAttempt(null, 'unsigned: no secret of the endpoint can be opened', 0);

async function send({ webhooks }: UrlRules, webhook: Parameters<typeof sendSigned>[1], at: UnixMs) {
  const sender = createWebhookSender({ connections: 1 });
  try {
    return await sendSigned({ sender, localTargets: webhooks.localTargets }, webhook, at);
  } finally {
    await sender.close();
  }
}

/** How far the attempt came. `unknown`: it failed at a place that does not tell. */
function describeConnection(
  url: string,
  { status, error }: { status: number | null; error: string | null },
): Pick<TestedEndpointView, 'dns' | 'tls'> {
  const { hostname, protocol } = new URL(url);
  const kind = error?.split(':', 1)[0] ?? '';
  const isLiteral = isIP(hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
  const dns = isLiteral ? 'not used' : kind === 'dns' ? 'failed' : NOT_RESOLVED.includes(kind) ? 'unknown' : 'ok';
  const tls = protocol === 'http:' ? 'not used' : kind === 'tls' ? 'failed' : status === null ? 'unknown' : 'ok';
  return { dns, tls };
}

const NOT_RESOLVED = ['target_refused', 'invalid_url', 'unsigned', 'network'];

async function recordPing(
  { db, now, random }: Deps,
  actor: Actor,
  { id: endpointId, projectId, network }: WebhookEndpoint,
): Promise<{ id: string; body: string }> {
  const timestamp = now();
  const data = { endpointId: encodeId('whe', endpointId) };
  const draft = { type: 'ping', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  const ping = newEvent(draft, { timestamp, random });
  await db.transaction(async (tx) => {
    await recordEvents(tx, network, [ping], timestamp);
    await insertTestDelivery(tx, ping.id, endpointId, timestamp);
    const detail = { eventId: encodeId('evt', ping.id) };
    await recordActions(tx, actor, timestamp, [
      { projectId, action: 'webhook.tested', subject: encodeId('whe', endpointId), detail },
    ]);
  });
  return ping;
}

/** Plans the one attempt of a test and leases it to the caller, so that no dispatcher makes it as well. */
const insertTestDelivery = commandOf(
  'test-delivery-insert',
  `insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, attempt_count, max_attempts, next_attempt_at,
     created_at)
   select e.id, $2, e.project_id, e.invoice_id, e.sequence, 1, 1, $3, $4 from events e where e.id = $1`,
  (eventId: string, endpointId: string, now: UnixMs) => [eventId, endpointId, new Date(now + LEASE_MS), new Date(now)],
);

/**
 * Ends the delivery of a test and logs its attempt. That a test fails or succeeds counts for nothing at the endpoint: it is the
 * operator who draws conclusions. `error` `null`: delivered.
 */
const recordTestAttempt = answerOf(
  'test-delivery-record',
  { eventId: 'uuid' },
  `with ended as (
     update deliveries set status = case when $5::text is null then 'delivered' else 'dead' end, finished_at = $3,
       last_status = $4, last_error = $5
     where event_id = $1 and endpoint_id = $2 and status = 'pending' and attempt_count = 1
     returning event_id, endpoint_id, attempt_count)
   insert into delivery_attempts (event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms, answer)
   select event_id, endpoint_id, attempt_count, $6::timestamptz, $4, $5, $7, $8 from ended
   on conflict (event_id, endpoint_id, attempt) do nothing
   returning event_id`,
  (ids: { eventId: string; endpointId: string }, now: UnixMs, outcome: TestOutcome) => [
    ids.eventId,
    ids.endpointId,
    new Date(now),
    outcome.status,
    outcome.error,
    new Date(outcome.attemptedAt),
    outcome.latencyMs,
    outcome.answer,
  ],
  () => undefined,
);

type TestOutcome = {
  attemptedAt: UnixMs;
  latencyMs: number | null;
  status: number | null;
  error: string | null;
  answer: string | null;
};
