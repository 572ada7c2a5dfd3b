import { createHash } from 'node:crypto';
import { conflict, usageError } from '../../../core/domain/errors.ts';
import { EVENT_TYPES, type EventType } from '../../../core/domain/event.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import { OPEN_AFTER_FAILURES } from '../../../core/domain/retry.ts';
import { DAY_MS, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { parseUrl } from '../../../core/domain/url.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { openKeyRing } from '../../../core/runtime/open-key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { count, maybe as mayLack } from '../../../core/store/db/statement.ts';
import {
  changeWebhookEndpoint,
  findWebhookEndpoint,
  insertWebhookEndpoint,
  listWebhookEndpoints,
  type WebhookEndpoint,
} from '../../../core/store/outbox/webhook-endpoints.ts';
import { findActiveSecrets, findNewestSecrets } from '../../../core/store/outbox/webhook-secrets.ts';
import { addEndpointSecret, openEndpointSecrets } from '../../../core/webhooks/endpoint-secrets.ts';
import { quotePage } from '../../../core/webhooks/redact.ts';
import { createWebhookSecret } from '../../../core/webhooks/sign.ts';
import { checkTarget, targetRule } from '../../../core/webhooks/target.ts';
import { type Actor, maySee } from '../actor.ts';
import { columnsText, fieldsText, isoMinute, isoSecond } from '../command-words.ts';
import { type KeyDeps, openEncryptionKeys } from '../encryption-keys.ts';
import {
  choice,
  id,
  list,
  listOf,
  maybe,
  of,
  part,
  type Shown,
  schemaOf,
  show,
  text,
  texts,
  time,
  whole,
  yes,
} from '../fields.ts';
import { clip, detectSecretInNote, FieldError } from '../input/problems.ts';
import { noSuch, readGivenSecret, readId } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { argument, line, lines, needed, projectId, secret } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectProject } from '../select.ts';

/** `eventTypes` is `null` for all types. */
const target = {
  ...{ endpointId: of('id', id('whe')), projectId: id('prj'), network: text, url: text, description: text },
  eventTypes: maybe(texts),
};
/** An endpoint without its secrets. `paused` means that attempts kept failing, so Quittance makes no attempt for a while. */
const endpointFields = {
  ...{ ...target, status: choice(['active', 'failing', 'paused', 'disabled']), createdAt: time },
  ...{ failingSince: maybe(time), pausedUntil: maybe(time), disabledAt: maybe(time), disabledReason: maybe(text) },
};
export type EndpointView = Shown<typeof endpointFields>;
/**
 * The outcome of an attempt. `error` is `null` if it was delivered. `webPage` is the title, or first words, of a web page that answered.
 */
export const attemptFields = {
  ...{ attemptedAt: time, latencyMs: maybe(whole), status: maybe(whole), error: maybe(text) },
  webPage: { ...of('answer', maybe(text)), show: quotePage },
};
const secretFields = { createdAt: time, endsAt: maybe(time) };
/** `dead` counts the events that were given up, up to 10,000. */
const listed = {
  ...{ ...endpointFields, undelivered: whole, isUndeliveredMore: yes, dead: whole },
  ...{ lastAttempt: maybe(part(attemptFields)), secrets: list(part(secretFields)) },
};
export type ListedEndpointView = Shown<typeof listed>;
/**
 * `day` has the results of the newest deliveries from the last 24 hours, without tests; `isSample` means that there were more.
 * `fingerprint` is the first 12 hexadecimal digits of the secret's SHA-256, or `null` if no configured key decrypts it.
 */
const shownFields = {
  ...listed,
  day: part({ looked: whole, delivered: whole, waiting: whole, dead: whole, isSample: yes }),
  oldestUndelivered: maybe(time),
  secrets: list(part({ ...secretFields, fingerprint: maybe(text) })),
};
export type ShownEndpointView = Shown<typeof shownFields>;

/** Describes an endpoint's state at a time. */
export const viewEndpoint = (endpoint: WebhookEndpoint, now: UnixMs): EndpointView =>
  show(endpointFields, { ...endpoint, ...stateOf(endpoint, now) });

function stateOf({ disabledAt, openUntil, failingSince, consecutiveFailures }: WebhookEndpoint, now: UnixMs) {
  if (disabledAt !== null) return { status: 'disabled', pausedUntil: null };
  if (openUntil !== null && openUntil > now && consecutiveFailures >= OPEN_AFTER_FAILURES)
    return { status: 'paused', pausedUntil: openUntil };
  return { status: failingSince === null ? 'active' : 'failing', pausedUntil: null };
}

/** Finds the endpoint with this `whe_…`. Throws `INVALID_ARGUMENT` or `NOT_FOUND`. */
export async function selectEndpoint(db: Sql, actor: Actor, endpointId: string, find = findWebhookEndpoint) {
  const endpoint = await find(db, readId('whe', endpointId));
  if (endpoint !== null && maySee(actor, endpoint.projectId)) return endpoint;
  throw noSuch('whe', endpointId);
}

/**
 * Refuses an action that doesn't apply to an adapter, because an adapter doesn't have its own URL, and its secret has a different form.
 * Throws `CONFLICT`.
 */
export function refuseAdapter({ id, adapter }: Pick<WebhookEndpoint, 'id' | 'adapter'>): void {
  if (adapter === null) return;
  if (adapter === 'price')
    throw conflict`${encodeId('whe', id)} is a currency rate for prices: it has no URL and no secret, and Quittance sends nothing to it. To change the rate: "${{ command: 'adapter enable', input: { kind: 'price', currency: '…', rate: '…' } }}". To end it: "${{ command: 'adapter disable', args: [encodeId('whe', id)] }}"`;
  throw conflict`${encodeId('whe', id)} is an adapter for ${adapter}, which notifies the shop at the URL in each order: see "${{ command: 'adapter list' }}"`;
}

/** Reads event types; `null` means all. Throws `INVALID_ARGUMENT`. */
export function readEventTypes(field: string, texts: readonly string[]): EventType[] | null {
  const names = texts.map((text) => text.trim()).filter((text) => text !== '');
  if (names.length === 1 && names[0] === 'all') return null;
  const types = EVENT_TYPES.filter((type) => names.includes(type));
  const unknown = names.find((name) => !types.some((type) => type === name));
  if (unknown === undefined && types.length > 0) return types;
  const problem =
    unknown === undefined
      ? 'is empty'
      : unknown === 'all'
        ? 'combines "all" with other types'
        : `has ${clip(unknown)}, which is not an event type`;
  throw new FieldError(field, `${problem}: use all, or choose from ${EVENT_TYPES.join(', ')}`);
}

/** The limit that the database schema sets. */
const MAX_LINE = 200;

/** Reads a line of free text that is stored and shown; it may be empty. Throws `INVALID_ARGUMENT`. */
export function readLine(field: string, text: string): string {
  const line = text.trim();
  refuseSecret(field, detectSecretInNote(line));
  const length = [...line].length;
  if (length <= MAX_LINE && !/[\p{Cc}\p{Cs}]/u.test(line)) return line;
  const problem = length > MAX_LINE ? `has ${length} characters` : 'contains a line break or a control character';
  throw new FieldError(field, `${problem}: use at most ${MAX_LINE} characters on one line`);
}

/** Whether this machine allows http and loopback targets on test networks. */
export type UrlRules = { webhooks: { localTargets: boolean } };

/**
 * Reads a URL, and refuses a URL to which no webhook could ever be delivered. The query may hold the receiver's token, so no message
 * repeats it. Throws `INVALID_ARGUMENT`.
 */
export function readWebhookUrl(
  text: string,
  network: Network,
  { webhooks: { localTargets } }: UrlRules,
  { field, example } = { field: 'url', example: URL_EXAMPLE },
): string {
  refuseSecret(field, OUR_SECRET.test(text) ? 'a Quittance secret' : null);
  const refuse = (reason: string) => new FieldError(field, `${reason}; nothing was changed`);
  const url = /^https?:\/\/[^/\\\s]/i.test(text) ? parseUrl(text) : null;
  if (url === null) throw refuse(`is not an http:// or https:// URL: use a URL such as ${example}`);
  if (url.href.length > MAX_URL_LENGTH)
    throw refuse(`has ${url.href.length} characters: use at most ${MAX_URL_LENGTH}`);
  if (url.hash !== '') {
    const shown = JSON.stringify(url.origin);
    throw refuse(`(${shown}) has a fragment, which is never sent: remove the "#" and everything after it`);
  }
  const check = checkTarget(url, targetRule(network, localTargets));
  if (check.kind === 'ok') return url.href;
  const wouldHelp = checkTarget(url, targetRule(network, true)).kind === 'ok';
  throw refuse(wouldHelp ? `${check.reason}; ${HOW_TO_ALLOW}` : check.reason);
}

const URL_EXAMPLE = 'https://shop.example.com/webhooks';
/** The URL may contain one of the receiver's tokens, but it's shown in lists, so it must not contain one of our secrets. */
const OUR_SECRET = /whsec_|qt_(?:live|test)_|qa_[0-9a-z]{26}/;
/** The limit that the database schema sets. */
const MAX_URL_LENGTH = 2048;
const HOW_TO_ALLOW = 'set QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow to let test projects use http and this machine';

const URL_WIRE = 'https:// and a public address';
const URL_HELP =
  'where webhooks are sent: an https:// URL with a public address; test projects can also use this machine, if that is allowed';
const settings = {
  url: line('<url>', URL_HELP, { wire: URL_WIRE }),
  description: line('<text>', 'description, up to 200 characters', { wire: 'One line of at most 200 characters' }),
  events: lines('<type…>', 'event types, comma-separated, or all', {
    examples: [['invoice.paid']],
    description: `Event types to send: \`all\`, or some of ${EVENT_TYPES.join(', ')}`,
  }),
};
export const endpointIdInput = argument('<endpoint>', 'whe_…', {
  ...{ pattern: '^whe_[0-7][0-9a-hjkmnp-tv-z]{25}$', examples: ['whe_01k2m9t0b3e8zr6v5x4c7d1f2g'] },
});
export const secretInput = secret(
  '<whsec_…>',
  'your own secret, 24 to 64 bytes; "-" reads it from standard input',
  'Your own secret: `whsec_` and the base64 of 24 to 64 bytes (default: generated)',
);
/** Replaces a secret that the user chose. */
export const NOT_SHOWN = 'as given, not shown';

/** Returns a hint about a secret: a generated one isn't shown again, and a typed one may be in the shell history. */
export function secretHint({ secret }: { secret: string | null }, isTyped: boolean, made: string): Text | false {
  if (secret !== null) return made;
  return (
    isTyped &&
    say`the secret you typed may now be in your shell history; use ${{ field: 'secret' }} - to read it from standard input`
  );
}

const typesText = ({ eventTypes }: Pick<EndpointView, 'eventTypes'>) => eventTypes?.join(',') ?? 'all';

type Random = (size: number) => Uint8Array;

export const addEndpoint = operation({
  action: 'addEndpoint',
  summary: 'Add an endpoint and show its signing secret once',
  route: 'POST /webhooks',
  command: 'webhook add',
  output: schemaOf({ ...target, secret: maybe(text) }),
  input: Type.Object({
    ...{ projectId: projectId(), ...settings, secret: secretInput },
    url: needed('<url>', URL_HELP, { wire: { description: URL_WIRE, examples: [URL_EXAMPLE] } }),
  }),
  read: ({ events = ['all'], description = '', secret, ...given }) => ({
    ...{ ...given, eventTypes: readEventTypes('events', events), description: readLine('description', description) },
    secret: secret === undefined ? null : readGivenSecret(secret),
  }),
  run: async (deps: KeyDeps & { db: Database; random: Random; config: UrlRules }, actor, input) => {
    const { db, now, random, config } = deps;
    const project = await selectProject(db, actor, input.projectId);
    const url = readWebhookUrl(input.url, project.network, config);
    const keyRing = await openEncryptionKeys(deps);
    const { description, eventTypes } = input;
    const secret = input.secret ?? createWebhookSecret(random);
    const endpoint = { id: uuidV7(now(), random(10)), projectId: project.id, url, secret, description, eventTypes };
    await db.transaction(async (tx) => {
      refuseTooMany(await refuseSameUrl(tx, project.id, url, null), true);
      await storeEndpoint(tx, { keyRing, now: now(), random }, endpoint);
      const about = { projectId: project.id, subject: encodeId('whe', endpoint.id) };
      await recordAction(tx, actor, now(), 'webhook.added', { ...about, detail: describeEndpoint(endpoint) });
    });
    const view = show(target, { ...endpoint, network: project.network });
    return { ...view, secret: input.secret === null ? secret : null };
  },
  print: (added, { isSecretTyped }) => ({
    text: fieldsText(added, [
      ['endpoint', 'endpointId'],
      ['project', 'projectId'],
      ['network', 'network'],
      ['url', 'url'],
      ['description', ({ description }) => description || null],
      ['events', typesText],
      ['secret', 'secret', NOT_SHOWN],
    ]),
    next: [
      secretHint(
        added,
        isSecretTyped,
        'copy the secret now, because it is not shown again: your receiver needs it to verify the signature of each webhook',
      ),
      say`to check that webhooks arrive: ${{ command: 'webhook test', args: [added.endpointId] }}`,
    ],
  }),
});

/** Ids are UUIDs, `secret` is `whsec_…`. `eventTypes` is null for all types. */
export type NewEndpoint = Parameters<typeof insertWebhookEndpoint>[1] & { secret: string };
type StoreDeps = { keyRing: KeyRing; now: UnixMs; random: Random };

/**
 * Stores an endpoint with its encrypted secret. Returns `false` if the id already exists, and then leaves the existing endpoint unchanged.
 * Doesn't write the audit log.
 */
export async function addWebhookEndpoint({ db, ...deps }: StoreDeps & { db: Database }, endpoint: NewEndpoint) {
  return db.transaction((tx) => storeEndpoint(tx, deps, endpoint));
}

async function storeEndpoint(tx: Sql, { keyRing, now, random }: StoreDeps, endpoint: NewEndpoint): Promise<boolean> {
  if (!(await insertWebhookEndpoint(tx, endpoint))) return false;
  await addEndpointSecret(tx, keyRing, { endpointId: endpoint.id, secret: endpoint.secret, now, random });
  return true;
}

/**
 * With the same URL twice, a receiver would get each event twice, with two signatures. `exceptId` is the endpoint being changed. No other
 * endpoint is added or moved until the transaction ends. Returns the project's endpoints. Throws `CONFLICT`.
 */
async function refuseSameUrl(tx: Sql, projectId: string, url: string, exceptId: string | null) {
  await lockProject(tx, projectId);
  const endpoints = await listWebhookEndpoints(tx, projectId);
  const same = endpoints.find((endpoint) => endpoint.url === url && endpoint.id !== exceptId);
  if (same === undefined) return endpoints;
  const endpointId = encodeId('whe', same.id);
  throw conflict`the project already has an endpoint with this URL (${endpointId}), so events would arrive there twice. Change its event types with "${{ command: 'webhook update', args: [endpointId], input: { events: '…' } }}", or use another URL`;
}

const lockProject = commandOf(
  'endpoint-desk-lock-project',
  'select from projects where id = $1 for no key update',
  (id: string) => [id],
);

/** Every event is sent to all enabled endpoints, and lists show at most 1,000. */
const MOST = { enabled: 100, all: 1000 };

/** Refuses one more endpoint beyond a project's limits. Throws `CONFLICT`. */
export function refuseTooMany(endpoints: readonly Pick<WebhookEndpoint, 'disabledAt'>[], isNew: boolean): void {
  const enabled = endpoints.filter(({ disabledAt }) => disabledAt === null).length;
  if (enabled < MOST.enabled && !(isNew && endpoints.length >= MOST.all)) return;
  const [count, words] = enabled < MOST.enabled ? [MOST.all, 'in all'] : [MOST.enabled, 'that are enabled'];
  throw conflict`the project has ${count} endpoints ${words}, which is the limit: change the URL of an endpoint with "${{ command: 'webhook update', args: ['whe_…'], input: { url: '…' } }}"`;
}

type Described = Pick<WebhookEndpoint, 'url' | 'description' | 'eventTypes'>;

/** Describes an endpoint for the record. The path and query of its URL are omitted, because they may hold a token. */
const describeEndpoint = ({ url, description, eventTypes }: Described) => ({
  ...{ origin: parseUrl(url)?.origin ?? null, description, eventTypes },
});

/** Describes an endpoint's changes for the record; `null` if there are none. */
function describeChange(before: Described, after: Described): object | null {
  const names = (['url', 'description', 'eventTypes'] as const).filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  );
  const [from, to] = [describeEndpoint(before), describeEndpoint(after)];
  const changes = names.map((name) => {
    const told = name === 'url' ? 'origin' : name;
    return [name, { from: from[told], to: to[told] }] as const;
  });
  return changes.length === 0 ? null : Object.fromEntries(changes);
}

export const listEndpoints = operation({
  action: 'listEndpoints',
  summary: "List a project's endpoints and their health, without their secrets",
  route: 'GET /webhooks',
  command: 'webhook list',
  does: 'list endpoints and their health, without their secrets',
  output: listOf(listed),
  input: Type.Object({ projectId: projectId() }),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, { projectId }) => {
    const project = await selectProject(db, actor, projectId);
    const rows = await addActivity(db, await listWebhookEndpoints(db, project.id), now());
    return { data: rows.map((row) => show(listed, row)) };
  },
  print: ({ data }) => {
    const disabled = data.find(({ status }) => status === 'disabled')?.endpointId;
    return {
      text: columnsText(data, [
        ['ENDPOINT', 'endpointId'],
        ['STATUS', statusText],
        ['EVENTS', typesText],
        ['UNDELIVERED', ({ undelivered, isUndeliveredMore }) => `${undelivered}${isUndeliveredMore ? '+' : ''}`],
        ['GIVEN UP', ({ dead }) => `${dead}${dead >= MAX_WAITING ? '+' : ''}`],
        ['LAST ATTEMPT (UTC)', lastAttemptText],
        [
          'SECRETS',
          ({ secrets }) => [secrets.length, ...secrets.flatMap(({ endsAt }) => endOf(endsAt) || [])].join(', '),
        ],
        ['URL', 'url'],
        ['DESCRIPTION', 'description'],
      ]),
      next: [
        data.length === 0 &&
          say`no endpoint yet: add an endpoint with "${{ command: 'webhook add', input: { url: '…' } }}"`,
        disabled !== undefined &&
          say`when a disabled endpoint's receiver works: ${{ command: 'webhook test', args: [disabled] }}, then webhook enable ${disabled}`,
        data.some(({ dead }) => dead > 0) &&
          say`Quittance sends an event that it has given up only if you replay it; to list these events: ${{ command: 'deliveries list', input: { status: 'dead' } }}`,
      ],
    };
  },
});

/** Describes an endpoint's status. */
export function statusText({ status, failingSince, pausedUntil, disabledReason }: EndpointView): string {
  if (status === 'disabled') return `disabled: ${disabledReason ?? 'no reason was given'}`;
  const since = failingSince === null ? '' : `failing since ${isoMinute(failingSince)}`;
  if (pausedUntil === null) return since || 'active';
  return `paused until ${isoSecond(pausedUntil)}${since && `, ${since}`}`;
}

function lastAttemptText({ lastAttempt }: Pick<ListedEndpointView, 'lastAttempt'>): string {
  if (lastAttempt === null) return 'none';
  const { attemptedAt, status, error } = lastAttempt;
  return `${isoMinute(attemptedAt)}, ${error?.split(':', 1)[0] ?? (status === null ? 'not sent' : `delivered, ${status}`)}`;
}

/** Adds each endpoint's recent activity. */
async function addActivity(db: Sql, endpoints: readonly WebhookEndpoint[], at: UnixMs) {
  const ids = endpoints.map(({ id }) => id);
  const activities = await findActivity(db, ids);
  const secrets = await findActiveSecrets(db, ids, at);
  return endpoints.map((endpoint) => {
    const isItsOwn = ({ endpointId }: { endpointId: string }) => endpointId === endpoint.id;
    const { waiting = 0, dead = 0, last: lastAttempt = null } = activities.find(isItsOwn) ?? {};
    return {
      ...{ ...endpoint, ...stateOf(endpoint, at), dead, lastAttempt, secrets: secrets.filter(isItsOwn) },
      ...{ undelivered: waiting, isUndeliveredMore: waiting >= MAX_WAITING },
    };
  });
}

/** Undelivered events, and events that were given up, are counted only up to this number. */
const MAX_WAITING = 10_000;

/** To find the last attempt, searches only the newest events and pending retries, so that a long history doesn't slow it down. */
const findActivity = rowsOf(
  'endpoint-desk-activity',
  {
    endpointId: 'uuid',
    waiting: count,
    dead: count,
    last: mayLack({ attemptedAt: 'timestamptz', latencyMs: 'int4?', status: 'int4?', error: 'text?', answer: 'text?' }),
  },
  `select asked.id as endpoint_id, waiting.count as waiting, dead.count as dead, last.attempted_at as last_attempted_at,
     last.latency_ms as last_latency_ms, last.status as last_status, last.error as last_error, last.answer as last_answer
   from unnest($1::uuid[]) asked (id) join webhook_endpoints w on w.id = asked.id
   cross join lateral (
     select count(*) as count from (
       select from deliveries where endpoint_id = asked.id and status = 'pending' limit ${MAX_WAITING}) pending) waiting
   cross join lateral (
     select count(*) as count from (
       select from deliveries d join events e on e.id = d.event_id
       where d.endpoint_id = asked.id and d.status = 'dead' and e.type <> 'ping' limit ${MAX_WAITING}) given_up) dead
   left join lateral (
     select a.attempted_at, a.latency_ms, a.status, a.error, a.answer
     from (
       (select id as event_id from events where project_id = w.project_id order by position desc limit 200)
       union
       (select event_id from deliveries where endpoint_id = asked.id and status = 'pending' and attempt_count > 0 limit 1000)) d
     join delivery_attempts a on a.event_id = d.event_id and a.endpoint_id = asked.id
     order by a.attempted_at desc limit 1) last on true`,
  (endpointIds: readonly string[]) => [endpointIds],
);

export const showEndpoint = operation({
  action: 'showEndpoint',
  summary: "Show an endpoint's health, its deliveries in the last 24 hours, and the fingerprints of its secrets",
  route: 'GET /webhooks/:endpointId',
  command: 'webhook show',
  output: schemaOf(shownFields),
  input: Type.Object({ endpointId: endpointIdInput }),
  run: async ({ db, now, config, note }: KeyDeps & { db: Database }, actor, { endpointId }) => {
    // Without the keys some details are missing, but the rest is still worth showing.
    const keyRing = await openKeyRing(config, { mayCreate: false, warn: note });
    return db.snapshot(async (tx) => {
      const at = now();
      const endpoint = await selectEndpoint(tx, actor, endpointId);
      const [row] = await addActivity(tx, [endpoint], at);
      if (row === undefined) throw new Error('an endpoint was missing from the list');
      const stored = (await findNewestSecrets(tx, endpoint.id)).filter(({ endsAt }) => endsAt === null || endsAt > at);
      const opened = keyRing === null ? [] : await openEndpointSecrets(keyRing, stored);
      const { oldest, ...day } = await findDay(tx, endpoint, unixMs(at - DAY_MS));
      const secrets = stored.map((each, index) => {
        const found = opened[index];
        return { ...each, fingerprint: found?.kind === 'ok' ? fingerprintOf(found.secret) : null };
      });
      const isSample = day.looked >= MAX_LOOKED;
      return show(shownFields, { ...row, day: { ...day, isSample }, oldestUndelivered: oldest, secrets });
    });
  },
  print: (endpoint) => ({
    text: fieldsText(endpoint, [
      ['endpoint', 'endpointId'],
      ['url', 'url'],
      ['description', ({ description }) => description || null],
      ['status', statusText],
      ['events', typesText],
      [
        '24 hours',
        ({ day: { looked, delivered, waiting, dead, isSample } }) =>
          `${delivered} of ${isSample ? 'the newest ' : ''}${looked} delivered, ${waiting} waiting, ${dead} given up`,
      ],
      ['oldest undelivered', 'oldestUndelivered'],
      ['last attempt', lastAttemptText],
      ['secrets', ({ secrets }) => secrets.map(secretText).join('; ')],
    ]),
    next: 'to get the fingerprint of a receiver\'s secret: printf %s "$SECRET" | sha256sum | cut -c1-12',
  }),
});

const endOf = (endsAt: string | null) => (endsAt === null ? '' : `until ${isoMinute(endsAt)}`);
const secretText = ({ fingerprint, endsAt }: ShownEndpointView['secrets'][number]) =>
  [fingerprint ?? 'cannot be decrypted', ...(endsAt === null ? [] : [endOf(endsAt)])].join(', ');

/** Identifies a secret without revealing it: the beginning of the SHA-256 of the text `whsec_…`, in hexadecimal. */
function fingerprintOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 12);
}

/** The maximum number of a day's deliveries to count. If there are more, the newest ones are used as a sample. */
const MAX_LOOKED = 2000;

/** Counts the results of the newest deliveries since a time, without tests, and finds the oldest one still waiting. */
const findDay = answerOf(
  'endpoint-desk-day',
  { looked: count, delivered: count, waiting: count, dead: count, oldest: 'timestamptz?' },
  `select count(*) as looked, count(*) filter (where status = 'delivered') as delivered,
     count(*) filter (where status = 'pending') as waiting, count(*) filter (where status = 'dead') as dead,
     (select min(created_at) from (
       select created_at from deliveries where endpoint_id = $2 and status = 'pending' limit ${MAX_WAITING}) waits) as oldest
   from (
     select d.status
     from (select id, type, created_at from events where project_id = $1 order by position desc limit ${MAX_LOOKED}) e
     join deliveries d on d.event_id = e.id and d.endpoint_id = $2
     where e.created_at >= $3 and e.type <> 'ping') newest`,
  ({ projectId, id }: { projectId: string; id: string }, since: UnixMs) => [projectId, id, new Date(since)],
  ([row]) => row ?? { looked: 0, delivered: 0, waiting: 0, dead: 0, oldest: null },
);

export const updateEndpoint = operation({
  action: 'updateEndpoint',
  summary: "Change an endpoint's URL, description or event types",
  route: 'PATCH /webhooks/:endpointId',
  command: 'webhook update',
  output: schemaOf(endpointFields),
  input: Type.Object({ endpointId: endpointIdInput, ...settings }),
  read: ({ endpointId, url, description, events }) => {
    if (url === undefined && description === undefined && events === undefined)
      throw usageError`no change was given: use ${{ field: 'url' }}, ${{ field: 'description' }} or ${{ field: 'events' }}`;
    return {
      ...{ endpointId, url },
      ...(events === undefined ? {} : { eventTypes: readEventTypes('events', events) }),
      ...(description === undefined ? {} : { description: readLine('description', description) }),
    };
  },
  run: async (
    { db, now, config }: { db: Database; now(): UnixMs; config: UrlRules },
    actor,
    { endpointId, ...change }: { endpointId: string; url: string | undefined } & Partial<Omit<Described, 'url'>>,
  ) => {
    const { before, after } = await db.transaction(async (tx) => {
      const found = await selectEndpoint(tx, actor, endpointId);
      refuseAdapter(found);
      const url = change.url === undefined ? null : readWebhookUrl(change.url, found.network, config);
      await lockProject(tx, found.projectId);
      // Read again, because all columns are written, and another request may have changed one of them before the lock.
      const before = await selectEndpoint(tx, actor, endpointId);
      const after = { ...before, ...change, url: url ?? before.url };
      await refuseSameUrl(tx, before.projectId, after.url, before.id);
      await changeWebhookEndpoint(tx, before, after);
      const changed = describeChange(before, after);
      if (changed !== null) {
        const { projectId } = before;
        await recordAction(tx, actor, now(), 'webhook.changed', { projectId, subject: endpointId, detail: changed });
      }
      return { before, after };
    });
    const areTypesGiven = change.eventTypes !== undefined;
    return { view: viewEndpoint(after, now()), isMoved: after.url !== before.url, areTypesGiven };
  },
  print: ({ view, isMoved, areTypesGiven }) => {
    const args = [view.endpointId];
    return {
      text: fieldsText(view, [
        ['endpoint', 'endpointId'],
        ['url', 'url'],
        ['description', 'description'],
        ['events', typesText],
      ]),
      next: [
        isMoved && say`undelivered events go to the new URL. To test it: ${{ command: 'webhook test', args }}`,
        view.disabledAt !== null &&
          say`the endpoint stays disabled, and Quittance sends nothing to it until you run "${{ command: 'webhook enable', args }}"`,
        areTypesGiven &&
          'the types apply to new events; Quittance still delivers the events that are already scheduled',
      ],
    };
  },
});

export const operations = [addEndpoint, listEndpoints, showEndpoint, updateEndpoint];

/** Refuses a field that contains a secret. The message doesn't repeat the secret, but says where it may now be stored. */
export function refuseSecret(field: string, kind: string | null): void {
  if (kind !== null) throw new FieldError(field, say`: ${{ secret: kind }}`);
}
