import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { attemptOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_ENDPOINT, SEALED_READ_RATE } from '../db/sealed-tables.ts';
import { listColumns, type Row, sealed, text } from '../db/statement.ts';

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
