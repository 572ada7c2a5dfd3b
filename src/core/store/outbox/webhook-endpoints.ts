import type { Network } from '../../domain/network.ts';
import { type EndpointHealth, OPEN_AFTER_FAILURES, OUTAGE } from '../../domain/retry.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_ENDPOINT, SEALED_READ_RATE } from '../db/sealed-tables.ts';
import { count, listColumns, type Row, sealed, statement, text } from '../db/statement.ts';

const columns = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  url: 'text',
  description: 'text',
  eventTypes: 'text[]?',
  /** The adapter's kind and rate, if the endpoint belongs to an adapter. */
  adapter: 'text?',
  currency: 'text?',
  rateMicro: 'int8?',
  /** The rate's source, if the rate isn't fixed. */
  rateSource: 'text?',
  createdAt: 'timestamptz',
  failingSince: 'timestamptz?',
  consecutiveFailures: 'int4',
  openUntil: 'timestamptz?',
  disabledAt: 'timestamptz?',
  disabledReason: 'text?',
  seal: sealed(SEALED_ENDPOINT),
} as const;

/** `eventTypes` is null for all types. `openUntil`: see `EndpointHealth`. */
export type WebhookEndpoint = Row<typeof columns>;

const COLUMNS = listColumns(columns);

type NewEndpoint = {
  id: string;
  projectId: string;
  url: string;
  description?: string;
  eventTypes?: readonly string[] | null;
  adapter?: string | null;
  currency?: string | null;
  rateMicro?: bigint | null;
  rateSource?: string | null;
  rateMinMicro?: bigint | null;
  rateMaxMicro?: bigint | null;
  /** The rate that the source returned, and the time of that rate. */
  readMicro?: bigint | null;
  readAt?: UnixMs | null;
};

/** The fields of an endpoint that doesn't belong to an adapter. */
const PLAIN: Pick<WebhookEndpoint, 'adapter' | 'currency' | 'rateMicro' | 'rateSource'> = {
  ...{ adapter: null, currency: null, rateMicro: null, rateSource: null },
};

/** Adds an endpoint to a project, on the project's network. Returns `false` if the id already exists. The endpoint also needs a secret. */
export const insertWebhookEndpoint = attemptOf(
  'webhook-endpoint-insert',
  `insert into webhook_endpoints (id, project_id, network, url, description, event_types, adapter, currency, rate_micro, rate_source,
     read_micro, read_at, read_mac, mac, rate_min_micro, rate_max_micro)
   select $1, p.id, p.network, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 from projects p where p.id = $2
   on conflict (id) do nothing`,
  ({ description = '', readMicro = null, readAt = null, ...endpoint }: NewEndpoint) => {
    const row = { ...PLAIN, eventTypes: null, ...endpoint };
    return [
      ...[row.id, row.projectId, row.url, description, row.eventTypes, row.adapter, row.currency, row.rateMicro],
      ...[row.rateSource, readMicro, readAt && new Date(readAt), sealReadRate({ ...row, readMicro, readAt })],
      ...[sealOf(SEALED_ENDPOINT, row), row.rateMinMicro ?? null, row.rateMaxMicro ?? null],
    ];
  },
);

export function sealReadRate(row: { id: string; projectId: string; readMicro: bigint | null; readAt: UnixMs | null }) {
  return row.readMicro === null ? null : sealOf(SEALED_READ_RATE, row);
}

/** Returns a project's oldest 1,000 endpoints. */
export const listWebhookEndpoints = rowsOf(
  'webhook-endpoint-list',
  columns,
  `select ${COLUMNS} from webhook_endpoints where project_id = $1 order by created_at, id limit 1000`,
  (projectId: string) => [projectId],
);

export const findWebhookEndpoint = rowOf(
  'webhook-endpoint-find',
  columns,
  `select ${COLUMNS} from webhook_endpoints where id = $1`,
  (id: string) => [id],
);

type ChangedEndpoint = Pick<WebhookEndpoint, 'id' | 'projectId'> & Partial<typeof PLAIN>;
type EndpointSettings = { url: string; description: string; eventTypes: readonly string[] | null };

/**
 * Changes an endpoint. A new URL clears the failure record, because earlier failures say nothing about the new URL. Undelivered events are
 * sent to the new URL when they are next due. Types apply only to future events. Returns `false` if the id is unknown.
 */
export const changeWebhookEndpoint = attemptOf(
  'webhook-endpoint-change',
  `update webhook_endpoints set url = $2, description = $3, event_types = $4, mac = $5,
     failing_since = case when url = $2 then failing_since end,
     consecutive_failures = case when url = $2 then consecutive_failures else 0 end,
     open_until = case when url = $2 then open_until end
   where id = $1`,
  (before: ChangedEndpoint, { url, description, eventTypes }: EndpointSettings) => [
    ...[before.id, url, description, eventTypes],
    sealOf(SEALED_ENDPOINT, { ...PLAIN, ...before, url, eventTypes }),
  ],
);

/** Enables an endpoint and clears its failure record. Returns `false` if the id is unknown. */
export const enableWebhookEndpoint = attemptOf(
  'webhook-endpoint-enable',
  `update webhook_endpoints
   set disabled_at = null, disabled_reason = null, failing_since = null, consecutive_failures = 0, open_until = null
   where id = $1`,
  (id: string) => [id],
);

/** Disables an endpoint. Its deliveries are left unchanged. Returns `false` if the endpoint is already disabled or unknown. */
export const disableWebhookEndpoint = attemptOf(
  'webhook-endpoint-disable',
  `update webhook_endpoints set disabled_at = $2, disabled_reason = $3 where id = $1 and disabled_at is null`,
  (id: string, now: UnixMs, reason: string) => [id, new Date(now), reason],
);

const health = {
  id: 'uuid',
  projectId: 'uuid',
  network: text<Network>(),
  url: 'text',
  description: 'text',
  failingSince: 'timestamptz?',
  consecutiveFailures: 'int4',
  openUntil: 'timestamptz?',
} as const;

/** An endpoint's record of failures. */
export type FailingEndpoint = Row<typeof health>;

const lock = statement(
  'endpoint-health-lock',
  health,
  `select ${listColumns(health)}
   from webhook_endpoints where id = any($1::uuid[]) and disabled_at is null order by project_id, id for no key update`,
);

const beImpatient = statement(
  'endpoint-health-patience',
  { lockTimeout: 'text' },
  "select set_config('lock_timeout', '1s', true) as lock_timeout",
);

/**
 * Returns which of the endpoints are enabled, locked until the transaction ends. They are locked in the order of their projects, like
 * projects when events are recorded, because disabling an endpoint records an event. From then on, the transaction waits for any lock for
 * at most a second.
 */
export async function lockEndpointHealth(tx: Sql, ids: readonly string[]): Promise<FailingEndpoint[]> {
  await tx.run(beImpatient, []);
  return tx.run(lock, [ids]);
}

/**
 * The SQL that says whether an endpoint is paused at a given time. The endpoint must have failed often enough, and the schema limits the
 * length of a pause, so that no one can block an endpoint by changing a single column.
 */
export function isPaused(endpoint: string, now: string): string {
  return `coalesce(${endpoint}.open_until > ${now} and ${endpoint}.open_until <= ${now} + interval '10 minutes'
         and ${endpoint}.consecutive_failures >= ${OPEN_AFTER_FAILURES}, false)`;
}

export const saveEndpointHealth = commandOf(
  'endpoint-health-save',
  'update webhook_endpoints set failing_since = $2, consecutive_failures = $3, open_until = $4 where id = $1',
  (id: string, { failingSince, consecutiveFailures, openUntil }: EndpointHealth) => {
    const at = (time: number | null) => (time === null ? null : new Date(time));
    return [id, at(failingSince), consecutiveFailures, at(openUntil)];
  },
);

/** Counts an endpoint's pending deliveries. */
export const countUndelivered = answerOf(
  'endpoint-undelivered-count',
  { count },
  "select count(*) as count from deliveries where endpoint_id = $1 and status = 'pending'",
  (endpointId: string) => [endpointId],
  ([row]) => row?.count ?? 0,
);

/**
 * Returns the first 100 enabled endpoints that have been failing since before a given time. If there are more, they probably have a common
 * cause.
 */
export const findLongFailingEndpoints = rowsOf(
  'endpoint-health-long-failing',
  { id: 'uuid', network: text<Network>(), url: 'text', failingSince: 'timestamptz' },
  `select id, network, url, failing_since from webhook_endpoints
   where failing_since <= $1 and disabled_at is null order by failing_since, id limit 100`,
  (before: UnixMs) => [new Date(before)],
);

/** For each adapter, this many pending deliveries are read, soonest first, because all deliveries wait meanwhile. */
const MOST_READ = 20_000;

/**
 * Returns up to a thousand callback URLs of adapter orders that are failing, judging by their pending deliveries. Each URL has the
 * approximate time when it started to fail.
 */
export const findFailingCallbackUrls = rowsOf(
  'callback-urls-failing',
  { endpointId: 'uuid', url: 'text', failingSince: 'timestamptz' },
  `select d.endpoint_id, o.notify_url as url, min(d.created_at) as failing_since
   from webhook_endpoints w cross join lateral (
     select d.* from deliveries d where d.endpoint_id = w.id and d.status = 'pending'
     order by d.next_attempt_at, d.created_at, d.sequence limit ${MOST_READ}) d
   join adapter_orders o on o.project_id = d.project_id and o.invoice_id = d.invoice_id
   where w.adapter is not null and w.disabled_at is null and d.attempt_count > 0 and d.last_error ~ '${OUTAGE}'
   group by d.endpoint_id, o.notify_url order by failing_since desc limit 1000`,
);

/** For each adapter, only this many callbacks that were given up are read, newest first. */
const MAX_DEAD = 10_000;

/**
 * Returns the first 100 adapters with paid orders whose callbacks have been failing since before one time, or were given up since another
 * time (`isGivenUp`). Each has the number of such orders, and the first order with the time of its event.
 */
export const findLongFailingCallbacks = rowsOf(
  'callbacks-long-failing',
  {
    ...{ endpointId: 'uuid', network: text<Network>(), isGivenUp: 'bool', count },
    ...{ failingSince: 'timestamptz', eventId: 'uuid', firstAt: 'timestamptz', error: 'text' },
  },
  `select w.id as endpoint_id, w.network, d.status = 'dead' as is_given_up, count(*) as count, min(d.created_at) as failing_since,
     (array_agg(d.event_id order by d.created_at, d.event_id))[1] as event_id, min(e.created_at) as first_at,
     (array_agg(d.last_error order by d.created_at, d.event_id))[1] as error
   from webhook_endpoints w cross join lateral (
     select event_id, status, created_at, last_error from deliveries
     where endpoint_id = w.id and status = 'pending' and last_error is not null and created_at <= $1
     union all
     select event_id, status, created_at, coalesce(last_error, '') from (
       select * from deliveries where endpoint_id = w.id and status = 'dead' order by event_id desc limit ${MAX_DEAD}) newest
     where finished_at > $2) d
   cross join lateral (select created_at from events where id = d.event_id and type = 'invoice.paid' limit 1) e
   where w.adapter is not null and w.disabled_at is null
   group by w.id, d.status order by failing_since, w.id limit 100`,
  (failedBefore: UnixMs, givenUpAfter: UnixMs) => [new Date(failedBefore), new Date(givenUpAfter)],
);

/** Returns the thousand endpoints that started failing most recently, and the time when each started. */
export const findFailingEndpoints = rowsOf(
  'endpoint-health-failing',
  { id: 'uuid', failingSince: 'timestamptz' },
  `select id, failing_since from webhook_endpoints
   where failing_since is not null and disabled_at is null order by failing_since desc limit 1000`,
);
