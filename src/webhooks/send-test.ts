import { eventBody } from '../domain/event.ts';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { keyMode } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing } from '../runtime/key-ring.ts';
import type { Database } from '../store/database.ts';
import { recordEvents } from '../store/events.ts';
import { insertTestDelivery, recordTestAttempt } from '../store/test-deliveries.ts';
import type { WebhookEndpoint } from '../store/webhook-endpoints.ts';
import type { DiagnosedAttempt, SigningSecret } from './diagnosis.ts';
import { openNewestSecrets } from './endpoint-secrets.ts';
import { redactAnswer } from './redact.ts';
import type { SendResult, WebhookSender } from './send.ts';
import { signWebhook } from './sign.ts';

type Deps = {
  db: Database;
  keyRing: KeyRing;
  sender: WebhookSender;
  now: () => UnixMs;
  random: (size: number) => Uint8Array;
  /** Whether projects of test networks may be told on this machine itself, and by http. */
  localTargets: boolean;
};

/** What a test came to, as it is recorded and as it is diagnosed. Ids are UUIDs. */
export type TestOutcome = { eventId: string; answer: string | null; attempt: DiagnosedAttempt };

/**
 * Writes a `ping` event and sends it to one endpoint from this process, once, as a dispatcher would: disabled or failing endpoints
 * too. It is recorded like every attempt, and counts for nothing at the endpoint.
 */
export async function sendTestWebhook(deps: Deps, endpoint: WebhookEndpoint): Promise<TestOutcome> {
  const { db, now } = deps;
  const secrets = await openNewestSecrets(deps, endpoint.id);
  const ping = await recordPing(deps, endpoint);
  const attemptedAt = now();
  const sent = { id: encodeId('evt', ping.id), body: Buffer.from(ping.body) };
  const result = await send(deps, endpoint, { ...sent, secrets, attemptedAt });
  const outcome = describe(result);
  const answer = outcome.answer === null ? null : redactAnswer(outcome.answer);
  const ids = { eventId: ping.id, endpointId: endpoint.id };
  await recordTestAttempt(db, ids, { ...outcome, answer, attemptedAt, now: now() });
  return { eventId: ping.id, answer, attempt: { ...outcome, attemptedAt, sent, secrets } };
}

async function recordPing(
  { db, now, random }: Deps,
  { id: endpointId, project_id: projectId, network }: WebhookEndpoint,
): Promise<{ id: string; body: string }> {
  const timestamp = now();
  const id = uuidV7(timestamp, random(10));
  const data = { endpointId: encodeId('whe', endpointId) };
  const ping = { id, projectId, type: 'ping' as const, sequence: 1 };
  const body = eventBody({ ...ping, timestamp, data });
  await db.transaction(async (tx) => {
    await recordEvents(tx, network, [{ ...ping, invoiceId: null, transferId: null, body }], timestamp);
    await insertTestDelivery(tx, id, endpointId, timestamp);
  });
  return { id, body };
}

async function send(
  { sender, localTargets }: Deps,
  { url, network }: WebhookEndpoint,
  webhook: { id: string; body: Buffer; secrets: readonly SigningSecret[]; attemptedAt: UnixMs },
): Promise<SendResult> {
  const { id, body, attemptedAt } = webhook;
  const signing = webhook.secrets.filter(({ endsAt }) => endsAt === null || endsAt > attemptedAt);
  if (signing.length === 0) return UNSIGNED;
  const headers = signWebhook({
    id,
    timestampSeconds: Math.floor(attemptedAt / 1000),
    body,
    secrets: signing.map(({ secret }) => secret),
  });
  const rule = localTargets && keyMode(network) === 'test' ? 'local' : 'public';
  return sender.send({ url, rule, headers, body, nowMs: attemptedAt });
}

const UNSIGNED: SendResult = {
  kind: 'failed',
  status: null,
  error: 'unsigned: no secret of the endpoint can be opened',
  retryAfterMs: null,
  latencyMs: 0,
  answer: null,
  date: null,
};

type Described = Pick<DiagnosedAttempt, 'status' | 'error' | 'answer' | 'date' | 'latencyMs'>;

function describe(result: SendResult): Described {
  // Nobody stops a test but the end of the process.
  if (result.kind === 'aborted') throw new Error('the attempt was stopped');
  if (result.kind === 'delivered') {
    const { status, answer, latencyMs } = result;
    return { status, error: null, answer, date: null, latencyMs };
  }
  const { status, error, answer, date, latencyMs } = result;
  return { status, error, answer, date, latencyMs };
}
