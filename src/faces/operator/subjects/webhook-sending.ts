import { isIP } from 'node:net';
import { disabledReason, withoutName } from '../../../core/domain/disable-reason.ts';
import { conflict } from '../../../core/domain/errors.ts';
import { type EventType, MISSABLE_TYPES, newEvent } from '../../../core/domain/event.ts';
import { encodeId, NIL_UUID } from '../../../core/domain/ids.ts';
import { joinTexts, say } from '../../../core/domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { requireKeyRing } from '../../../core/runtime/open-key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import { resolveAlarms } from '../../../core/store/chain/alarms.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf } from '../../../core/store/db/rows-of.ts';
import { count } from '../../../core/store/db/statement.ts';
import { WANTS_EVENT } from '../../../core/store/outbox/adapter-orders.ts';
import { LEASE_MS } from '../../../core/store/outbox/deliveries.ts';
import { DELIVERIES_CHANNEL, recordEvents } from '../../../core/store/outbox/events.ts';
import {
  disableWebhookEndpoint,
  enableWebhookEndpoint,
  findWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from '../../../core/store/outbox/webhook-endpoints.ts';
import { endWebhookSecrets, findActiveSecrets } from '../../../core/store/outbox/webhook-secrets.ts';
import { addEndpointSecret, openEndpointSecrets, openNewestSecrets } from '../../../core/webhooks/endpoint-secrets.ts';
import { redactAnswer, refusePage } from '../../../core/webhooks/redact.ts';
import { createWebhookSender, failedAttempt, sendSigned } from '../../../core/webhooks/send.ts';
import { createWebhookSecret } from '../../../core/webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { fieldsText, formatFields, writeText } from '../command-words.ts';
import { type KeyDeps, openEncryptionKeys } from '../encryption-keys.ts';
import {
  choice,
  list,
  literal,
  maybe,
  part,
  type Shown,
  said,
  schemaOf,
  show,
  text,
  time,
  whole,
  yes,
} from '../fields.ts';
import { clip, FieldError, quoteWhole } from '../input/problems.ts';
import { parseDuration, readGivenSecret, readId } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { BY, flag, line } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { type DiagnosedAttempt, diagnoseAttempt } from '../webhooks/diagnose.ts';
import {
  attemptFields,
  endpointIdInput,
  NOT_SHOWN,
  readLine,
  refuseAdapter,
  refuseTooMany,
  secretHint,
  secretInput,
  selectEndpoint,
  type UrlRules,
} from './webhooks.ts';

type Random = (size: number) => Uint8Array;

const lock = commandOf(
  'endpoint-desk-lock',
  'select from webhook_endpoints where id = $1 for no key update',
  (id: string) => [id],
);

/** Locks an endpoint (UUID) until the transaction ends so that concurrent operators see each other's changes. */
async function lockWebhookEndpoint(tx: Sql, id: string): Promise<WebhookEndpoint | null> {
  await lock(tx, id);
  return findWebhookEndpoint(tx, id);
}

const rotated = { endpointId: text, secret: maybe(text), formerSecretEndsAt: time, isFormerSecretLost: yes };

type RotateDeps = KeyDeps & { db: Database; random: Random };

const MAX_OVERLAP_MS = 30 * 86_400_000;

export const rotateSecret = operation({
  action: 'rotateSecret',
  summary:
    'Give an endpoint a new secret and show it once; for a limited time, Quittance also signs with the previous secret',
  route: 'POST /webhooks/:endpointId/rotate',
  command: 'webhook rotate',
  output: schemaOf(rotated),
  input: Type.Object({
    ...{ endpointId: endpointIdInput, secret: secretInput },
    overlap: line(
      '<duration>',
      'time for which Quittance also signs with the previous secret, up to 30d; 0 ends all previous secrets immediately',
      {
        default: '24h',
        wire: 'Time for which Quittance also signs with the previous secret, `0` to `30d` (default: `24h`)',
      },
    ),
    isKeyLost: flag(
      'use a different master key, because the master key that encrypted the previous secret is permanently lost',
    ),
  }),
  read: ({ endpointId, overlap = '24h', secret, isKeyLost = false }) => {
    const overlapMs = /^0[mhd]?$/.test(overlap) ? 0 : parseDuration(overlap);
    if (overlapMs === null || overlapMs > MAX_OVERLAP_MS) {
      throw new FieldError('overlap', `is ${clip(overlap)}: use 0, or a duration of up to 30d such as 24h`);
    }
    return { endpointId, overlapMs, secret: secret === undefined ? null : readGivenSecret(secret), isKeyLost };
  },
  run: async (deps: RotateDeps, actor, { endpointId: id, overlapMs, secret: given, isKeyLost }) => {
    const endpointId = readId('whe', id);
    const keyRing = await openEncryptionKeys(deps, { isKeyLost });
    const secret = given ?? createWebhookSecret(deps.random);
    const now = deps.now();
    const rotation = { endpointId, secret, overlapMs };
    const { formerEndsAt, isFormerLost } = await rotateEndpointSecret({ ...deps, keyRing, now }, actor, rotation);
    const view = show(rotated, {
      ...{ endpointId: id, secret: given === null ? secret : null },
      ...{ formerSecretEndsAt: formerEndsAt, isFormerSecretLost: isFormerLost },
    });
    return { view, hasOverlap: overlapMs > 0 && !isFormerLost };
  },
  print: ({ view, hasOverlap }, { isSecretTyped }) => ({
    text: fieldsText(view, [
      ['endpoint', 'endpointId'],
      ['secret', 'secret', NOT_SHOWN],
      ['previous secret', () => (hasOverlap ? `also signs until ${view.formerSecretEndsAt}` : 'no longer signs')],
    ]),
    next: [
      secretHint(view, isSecretTyped, 'copy the secret now, because it is not shown again'),
      view.isFormerSecretLost
        ? 'the configured master keys could not decrypt the previous secret, so it ended immediately'
        : hasOverlap
          ? 'until the previous secret ends, each webhook has both signatures: update the receiver before that time'
          : 'receivers that still use the previous secret now reject webhooks; Quittance retries the rejected webhooks',
    ],
  }),
});

/**
 * Gives an endpoint (UUID) a new secret (`whsec_…`), all or nothing. The previous secret still signs for `overlapMs`, until `formerEndsAt`.
 * 0 ends it immediately, together with any older secret that still signs. If no key decrypts the previous secret, it can't sign, so it ends
 * immediately (`isFormerLost`).
 */
export async function rotateEndpointSecret(
  { db, keyRing, now, random }: { db: Database; keyRing: KeyRing; now: UnixMs; random: Random },
  actor: Actor,
  { endpointId: uuid, secret, overlapMs }: { endpointId: string; secret: string; overlapMs: number },
): Promise<{ formerEndsAt: UnixMs; isFormerLost: boolean }> {
  const endpointId = encodeId('whe', uuid);
  return db.transaction(async (tx) => {
    const endpoint = await selectEndpoint(tx, actor, endpointId, lockWebhookEndpoint);
    refuseAdapter(endpoint);
    const { projectId } = endpoint;
    const active = await findActiveSecrets(tx, [uuid], now);
    const opened = await openEndpointSecrets(keyRing, active);
    if (opened.some((each) => each.kind === 'ok' && each.secret === secret))
      throw conflict`${endpointId} already signs with this secret; nothing was changed`;
    const isFormerLost = active.some(({ endsAt }, index) => endsAt === null && opened[index]?.kind !== 'ok');
    const ending = active.flatMap(({ endsAt }, index) => (opened[index]?.kind === 'ok' && endsAt) || []);
    if (overlapMs > 0 && ending.length > 0) {
      // With three valid secrets, receivers couldn't tell which one to expect.
      throw conflict`${endpointId} was already rotated, and its previous secret signs until ${toIso(unixMs(Math.max(...ending)))}. If you have the new secret, wait until then. If you never received it, don't wait, because from then on only the new secret signs: rotate again now with ${{ field: 'overlap' }} 0. That ends all earlier secrets immediately`;
    }
    const formerEndsAt = unixMs(now + (isFormerLost ? 0 : overlapMs));
    await endWebhookSecrets(tx, uuid, formerEndsAt);
    await addEndpointSecret(tx, keyRing, { endpointId: uuid, secret, now, random });
    const detail = { formerSecretEndsAt: toIso(formerEndsAt) };
    await recordAction(tx, actor, now, 'webhook.rotated', { projectId, subject: endpointId, detail });
    return { formerEndsAt, isFormerLost };
  });
}

export const diagnosisFields = { code: text, certainty: choice(['proven', 'likely']), problem: text, fix: said };
type DiagnosisView = Shown<typeof diagnosisFields>;
const reached = choice(['ok', 'failed', 'unknown', 'not used']);
const tested = {
  ...{ endpointId: text, eventId: text, isDelivered: yes, attemptedAt: time },
  ...{ status: maybe(whole), latencyMs: maybe(whole) },
  ...{ error: maybe(text), dns: reached, tls: reached, answer: maybe(text), webPage: attemptFields.webPage },
  diagnosis: list(part(diagnosisFields)),
};
export type TestedEndpointView = Shown<typeof tested>;

type TestDeps = RotateDeps & { config: UrlRules };
/** The maximum number of characters to show of a response in a terminal. */
const MAX_ANSWER = 500;

/**
 * Writes a `ping` event and sends it to one endpoint once, from this process, as a dispatcher would. Disabled and failing endpoints are
 * tested too. The attempt is recorded like any other, but doesn't affect the endpoint's state. Throws `INVALID_ARGUMENT` or `NOT_FOUND`.
 */
export const testEndpoint = operation({
  action: 'testEndpoint',
  summary: 'Send a ping to an endpoint now and diagnose problems with its receiver',
  route: 'POST /webhooks/:endpointId/test',
  command: 'webhook test',
  does: 'send a ping to an endpoint now and diagnose problems with its receiver; exits 1 if it is not delivered',
  output: schemaOf(tested),
  input: Type.Object({ endpointId: endpointIdInput }),
  run: async (deps: TestDeps, actor, { endpointId }) => {
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
    // Only shutting down the process cancels a test.
    if (result.kind === 'aborted') throw new Error('the attempt was cancelled');
    const { status, latencyMs } = result;
    const { error, date } = result.kind === 'failed' ? result : { error: null, date: null };
    const answer = result.answer && redactAnswer(result.answer);
    const outcome = { attemptedAt, status, latencyMs, error };
    await recordTestAttempt(db, { eventId: ping.id, endpointId: endpoint.id }, now(), { ...outcome, answer });
    const view = show(tested, {
      ...{ endpointId, eventId: sent.id, isDelivered: error === null, ...outcome, answer },
      ...describeConnection(endpoint.url, outcome),
      diagnosis: diagnoseAttempt({ ...outcome, answer: result.answer, date, sent, secrets }),
    });
    return { view, url: endpoint.url, isDisabled: endpoint.disabledAt !== null };
  },
  print: ({ view, url, isDisabled }) => {
    const fields = fieldsText(view, [
      ['endpoint', 'endpointId'],
      ['url', () => url],
      ['event', ({ eventId }) => `${eventId}, a ping`],
      ['result', ({ isDelivered, error }) => (isDelivered ? 'delivered' : `failed: ${error}`)],
      ['status', 'status'],
      ['latency', ({ latencyMs }) => (latencyMs === null ? null : `${latencyMs} ms`)],
      ['dns', 'dns'],
      ['tls', 'tls'],
      ['answer', ({ answer }) => answerText(answer, MAX_ANSWER) || null],
    ]);
    const enable = { command: 'webhook enable', args: [view.endpointId] };
    return {
      text: [fields, diagnosisText(view.diagnosis)],
      next: view.isDelivered && isDisabled && say`the endpoint is disabled; to enable it, run ${enable}`,
      hasFailed: !view.isDelivered,
    };
  },
});

/** Lists a receiver's problems, most telling first. Empty if there is none. */
export function diagnosisText(diagnoses: readonly DiagnosisView[]): string {
  if (diagnoses.length === 0) return '';
  const parts = diagnoses.map(({ code, certainty, problem, fix }, index) =>
    formatFields([
      [`${index + 1}. ${code}, ${certainty}`, problem],
      ['   to do', writeText(fix)],
    ]),
  );
  return ['WHAT IS WRONG', ...parts].join('\n');
}

/** Quotes the beginning of a response for a terminal; JSON has all of it. Empty if there was none. */
export function answerText(answer: string | null, limit: number): string {
  if (answer === null || answer === '') return '';
  return quoteWhole(answer.length > limit ? `${answer.slice(0, limit)}…` : answer);
}

const UNSIGNED = failedAttempt(null, "unsigned: none of the endpoint's secrets can be decrypted", 0);

async function send({ webhooks }: UrlRules, webhook: Parameters<typeof sendSigned>[1], at: UnixMs) {
  const sender = createWebhookSender({ connections: 1 });
  const sending = sendSigned({ sender, localTargets: webhooks.localTargets }, webhook, at);
  return sending.finally(() => sender.close());
}

/** Describes how far the attempt got. `unknown` means that the error doesn't say. */
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

async function recordPing({ db, now, random }: TestDeps, actor: Actor, endpoint: WebhookEndpoint) {
  const { id: endpointId, projectId, network } = endpoint;
  const timestamp = now();
  const data = { endpointId: encodeId('whe', endpointId) };
  const draft = { type: 'ping', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  const ping = newEvent(draft, { timestamp, random });
  await db.transaction(async (tx) => {
    await recordEvents(tx, network, [ping], timestamp);
    await insertTestDelivery(tx, ping.id, endpointId, timestamp);
    const about = { projectId, subject: data.endpointId, detail: { eventId: encodeId('evt', ping.id) } };
    await recordAction(tx, actor, timestamp, 'webhook.tested', about);
  });
  return ping;
}

/** Plans a test's only attempt and leases it to the caller, so that no dispatcher sends it too. */
const insertTestDelivery = commandOf(
  'test-delivery-insert',
  `insert into deliveries (event_id, endpoint_id, project_id, invoice_id, sequence, attempt_count, max_attempts, next_attempt_at,
     created_at)
   select e.id, $2, e.project_id, e.invoice_id, e.sequence, 1, 1, $3, $4 from events e where e.id = $1`,
  (eventId: string, endpointId: string, now: UnixMs) => [eventId, endpointId, new Date(now + LEASE_MS), new Date(now)],
);

/**
 * Finishes a test's delivery and logs its attempt. The result doesn't affect the endpoint's state, because the operator draws the
 * conclusions. `error` is `null` if it was delivered.
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
  (ids: { eventId: string; endpointId: string }, now: UnixMs, { attemptedAt, ...outcome }: TestOutcome) => [
    ...[ids.eventId, ids.endpointId, new Date(now), outcome.status, outcome.error, new Date(attemptedAt)],
    ...[outcome.latencyMs, outcome.answer],
  ],
  () => undefined,
);

type TestOutcome = Pick<DiagnosedAttempt, 'attemptedAt' | 'latencyMs' | 'status' | 'error'> & { answer: string | null };

/** One transaction handles this many deliveries in half a second. */
const BATCH = 20_000;
/** A higher count only means "many". Counting this far takes about a second. */
const MAX_MISSED = 100_000;
/** A transaction that began before the endpoint was disabled plans no delivery to it, even if the transaction ends later. */
const MARGIN_MS = 60_000;

type ActDeps = { db: Database; now(): UnixMs };

/**
 * Waits for transactions that are writing a project's events, because they schedule no deliveries for an endpoint that is still disabled. Until this
 * transaction ends, no others begin. If the project has no events yet, this skips its first position, because a row that doesn't exist can't be locked.
 */
const lockEventStream = commandOf(
  'endpoint-desk-stream-lock',
  `insert into event_streams as s (project_id, last_position) values ($1, 1)
   on conflict (project_id) do update set last_position = s.last_position`,
  (projectId: string) => [projectId],
);

/**
 * `dead` events were given up at any time, and `missed` events occurred while the endpoint was disabled. `replay` is the next step, which
 * sends both: one command for each.
 */
const enabled = {
  ...{ endpointId: text, status: literal('active'), disabledAt: maybe(time), disabledReason: maybe(text) },
  ...{ hastened: whole, dead: whole, missed: whole, isMissedMore: yes, replay: maybe(said) },
};

/**
 * Enables an endpoint: resets its failures, closes its alarm, and makes its waiting deliveries due at once. Throws `NOT_FOUND` or
 * `CONFLICT`.
 */
export const enableEndpoint = operation({
  action: 'enableEndpoint',
  summary: 'Resume deliveries to an endpoint, and send waiting events immediately',
  route: 'POST /webhooks/:endpointId/enable',
  command: 'webhook enable',
  output: schemaOf(enabled),
  input: Type.Object({ endpointId: endpointIdInput }),
  run: async ({ db, now }: ActDeps, actor, { endpointId }) => {
    // This runs before attempts resume so that one invoice's events keep their order.
    const hastened = await hasten({ db, now }, (await selectEndpoint(db, actor, endpointId)).id);
    const endpoint = await db.transaction(async (tx) => {
      const found = await selectEndpoint(tx, actor, endpointId, lockWebhookEndpoint);
      if (actor.kind === 'key') refuseAdapter(found);
      if (found.disabledAt !== null) refuseTooMany(await listWebhookEndpoints(tx, found.projectId), false);
      if (found.disabledAt !== null) await lockEventStream(tx, found.projectId);
      await enableWebhookEndpoint(tx, found.id);
      await resolveAlarms(tx, found.network, 'webhook-disabled', endpointId);
      await notifyDispatchers(tx);
      if (found.disabledAt === null && hastened === 0) return found;
      const detail = { disabledReason: found.disabledReason, hastened };
      await recordAction(tx, actor, now(), 'webhook.enabled', {
        projectId: found.projectId,
        subject: endpointId,
        detail,
      });
      return found;
    });
    const { disabledAt, disabledReason } = endpoint;
    const missedFrom = unixMs(Math.max(0, (disabledAt ?? now()) - MARGIN_MS));
    const missed = disabledAt === null ? 0 : await countMissed(db, endpoint, missedFrom);
    const { count: dead, oldestAt } = await findDead(db, endpoint.id);
    const replay = (status: 'dead' | 'missing', from: UnixMs) =>
      say`${{ command: 'deliveries replay', input: { endpoint: endpointId, from: toIso(from), status } }}`;
    // Each command sends only the events that are counted here.
    const replays = [
      ...(oldestAt === null ? [] : [replay('dead', oldestAt)]),
      ...(missed === 0 ? [] : [replay('missing', missedFrom)]),
    ];
    return show(enabled, {
      ...{ endpointId, status: 'active', disabledAt, disabledReason, hastened },
      ...{ dead, missed, isMissedMore: missed >= MAX_MISSED },
      replay: replays.length === 0 ? null : joinTexts(replays, '\n'),
    });
  },
  print: (done) => ({
    text: fieldsText(done, [
      ['endpoint', 'endpointId'],
      [
        'status',
        ({ disabledAt }) => (disabledAt === null ? 'active, as before; the failure count was reset' : 'active'),
      ],
      ['was disabled', ({ disabledAt, disabledReason }) => disabledAt && `${disabledAt}: ${disabledReason ?? ''}`],
      [
        'due now',
        ({ hastened }) => (hastened === 0 ? null : `${hastened} deliveries that were waiting for their next attempt`),
      ],
      ['given up', ({ dead }) => (dead === 0 ? null : `${dead} events`)],
      [
        'not planned',
        ({ missed, isMissedMore }) =>
          missed === 0
            ? null
            : `${isMissedMore ? 'more than ' : ''}${missed} events from the time when the endpoint was disabled`,
      ],
    ]),
    next:
      done.replay &&
      say`Quittance sends these events only if you replay them (they are also in the feed):\n${done.replay}`,
  }),
});

async function hasten({ db, now }: ActDeps, endpointId: string): Promise<number> {
  let hastened = 0;
  for (let after = NIL_UUID; ; ) {
    const ids = await expediteDeliveries(db, endpointId, now(), { after, limit: BATCH });
    hastened += ids.length;
    if (ids.length < BATCH) return hastened;
    after = ids.reduce((a, b) => (a > b ? a : b));
  }
}

/** Returns the event types that this endpoint may have missed, because no delivery to it was ever planned. */
export function missableTypes(endpoint: Pick<WebhookEndpoint, 'eventTypes'>): EventType[] {
  return MISSABLE_TYPES.filter((type) => endpoint.eventTypes?.includes(type) ?? true);
}

async function countMissed(db: Database, endpoint: WebhookEndpoint, from: UnixMs): Promise<number> {
  const first = await findPositionAt(db, endpoint.projectId, from);
  return countUnplanned(db, endpoint, first, missableTypes(endpoint), MAX_MISSED);
}

/** How much the clocks of machines that run commands and dispatchers may differ. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Whether a pending delivery `d` waits for a later attempt and no attempt is in progress. An attempt in progress has been counted but not
 * logged, until its lease expires.
 */
export const isLateSql = (now: string) => `(
  d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS} milliseconds'
  and (d.attempt_count = 0 or d.next_attempt_at > ${now}::timestamptz + interval '${LEASE_MS + CLOCKS_DIFFER_MS} milliseconds'
    or exists (select from delivery_attempts a
      where a.event_id = d.event_id and a.endpoint_id = d.endpoint_id and a.attempt = d.attempt_count)))`;

/** Makes an endpoint's waiting deliveries due now, in the order of their events after `after`. Returns their ids. */
export const expediteDeliveries = answerOf(
  'delivery-hasten',
  { eventId: 'uuid' },
  `with late as (
     select event_id from deliveries d
     where d.endpoint_id = $1 and d.status = 'pending' and d.event_id > $3 and ${isLateSql('$2')}
     order by d.event_id limit $4::int8 for update),
   placed as (select event_id, row_number() over (order by event_id) as place from late)
   update deliveries d set next_attempt_at = least($2, now()), created_at = $2::timestamptz + placed.place * interval '1 microsecond'
   from placed where d.event_id = placed.event_id and d.endpoint_id = $1
   returning d.event_id`,
  (endpointId: string, now: UnixMs, { after, limit }: { after: string; limit: number }) => {
    return [endpointId, new Date(now), after, limit];
  },
  (rows) => rows.map((row) => row.eventId),
);

/** Counts the events from a position onwards without a planned delivery to the endpoint, up to `limit`. */
const countUnplanned = answerOf(
  'replay-count-missing',
  { count },
  `select count(*) as count from (
     select from events e join webhook_endpoints w on w.id = $2 and ${WANTS_EVENT}
     where e.project_id = $1 and e.position >= $3 and e.type = any($4::text[])
       and not exists (select from deliveries d where d.event_id = e.id and d.endpoint_id = $2)
     limit $5::int8) missing`,
  ({ id, projectId }: { id: string; projectId: string }, first: bigint, types: readonly EventType[], limit: number) => {
    return [projectId, id, first, types, limit];
  },
  ([row]) => row?.count ?? 0,
);

/** Counts the events that were given up, without tests, up to `MAX_MISSED`. Also returns the time of the oldest. */
const findDead = answerOf(
  'replay-count-dead',
  { count, oldestAt: 'timestamptz?' },
  `select count(*) as count, min(created_at) as oldest_at from (
     select e.created_at from deliveries d join events e on e.id = d.event_id
     where d.endpoint_id = $1 and d.status = 'dead' and e.type <> 'ping' order by d.event_id limit ${MAX_MISSED}) dead`,
  (endpointId: string) => [endpointId],
  ([row]) => row ?? { count: 0, oldestAt: null },
);

/**
 * Returns a position that separates the project's events before a time from the events at or after it. Positions increase with time, so a
 * binary search finds the right one. A restore leaves a gap, so the search looks at the next event after each position. Events of concurrent
 * transactions are in the order of the commits, so the result is only accurate to the duration of a transaction.
 */
export const findPositionAt = answerOf(
  'delivery-desk-position',
  { position: 'int8' },
  `with recursive search (low, high) as (
     select 1::int8, last_position + 1 from event_streams where project_id = $1
     union all
     select case when e.created_at < $2 then e.position + 1 else low end,
       case when e.created_at < $2 then high else middle.position end
     from search cross join lateral (select (low + high) / 2 as position) middle
     left join lateral (
       select e.position, e.created_at from events e
       where e.project_id = $1 and e.position >= middle.position order by e.position limit 1) e on true
     where low < high)
   select low as position from search where low = high`,
  (projectId: string, time: UnixMs) => [projectId, new Date(time)],
  ([row]) => row?.position ?? 1n,
);

/** Returns the position of the project's first event at or after a position, or `null` if there is none. */
export const findNextPosition = answerOf(
  'delivery-desk-next-position',
  { position: 'int8' },
  'select position from events where project_id = $1 and position >= $2 order by position limit 1',
  (projectId: string, position: bigint) => [projectId, position],
  ([row]) => row?.position ?? null,
);

/** Tells the dispatchers that deliveries are due. */
export const notifyDispatchers = answerOf(
  'delivery-notify',
  { notified: 'text?' },
  `select pg_notify('${DELIVERIES_CHANNEL}', '')::text as notified`,
  () => [],
  () => undefined,
);

const disabled = { endpointId: text, status: literal('disabled'), disabledReason: text };

/** Stops deliveries to an endpoint. Undelivered ones are kept, and later events aren't planned for it. Throws `NOT_FOUND` or `CONFLICT`. */
export const disableEndpoint = operation({
  action: 'disableEndpoint',
  summary: 'Stop sending webhooks to an endpoint until it is enabled again',
  route: 'POST /webhooks/:endpointId/disable',
  command: 'webhook disable',
  by: BY,
  output: schemaOf(disabled),
  input: Type.Object({
    endpointId: endpointIdInput,
    reason: line('<text>', 'reason, up to 200 characters', { wire: 'Reason: one line of at most 200 characters' }),
  }),
  read: ({ endpointId, reason = '' }) => ({ endpointId, reason: readLine('reason', reason) }),
  run: async ({ db, now }: ActDeps, actor, input): Promise<Shown<typeof disabled>> => {
    const { endpointId } = input;
    const endpoint = await selectEndpoint(db, actor, endpointId);
    // Only operators may disable an adapter. Nothing is sent for a price.
    if (actor.kind === 'key' || endpoint.adapter === 'price') refuseAdapter(endpoint);
    const { id, projectId, disabledReason: former } = endpoint;
    const why = disabledReason(input.reason, actor.name);
    const isDisabled = await db.transaction(async (tx) => {
      if (!(await disableWebhookEndpoint(tx, id, now(), why))) return false;
      const detail = { reason: input.reason };
      await recordAction(tx, actor, now(), 'webhook.disabled', { projectId, subject: endpointId, detail });
      return true;
    });
    if (isDisabled) return { endpointId, status: 'disabled', disabledReason: why };
    const told = former !== null && actor.kind === 'key' ? withoutName(former) : former;
    throw conflict`${endpointId} is already disabled${told === null ? '' : `: ${told}`}`;
  },
  print: (done) => ({
    text: fieldsText(done, [
      ['endpoint', 'endpointId'],
      ['status', 'status'],
      ['reason', 'disabledReason'],
    ]),
    next: say`Quittance sends nothing to this endpoint until you run "${{ command: 'webhook enable', args: [done.endpointId] }}". New events are not scheduled for it, but are in the feed`,
  }),
});

export const operations = [rotateSecret, testEndpoint, enableEndpoint, disableEndpoint];
