import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type EndpointActivity, findEndpointActivity, MAX_WAITING } from '../../store/endpoint-desk.ts';
import { listWebhookEndpoints, type WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { findActiveSecrets, type StoredSecret } from '../../store/webhook-secrets.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import { formatTable, type Result, type Terminal } from '../terminal.ts';
import { toMinute } from '../time-text.ts';
import { withDatabase } from '../with-database.ts';
import { describeEndpoint, eventTypesText, statusText } from './describe.ts';

type Listed = { endpoint: WebhookEndpoint; activity: EndpointActivity; secrets: StoredSecret[] };

/** Lists the endpoints of a project with how they do, without their secrets. */
export async function listWebhooks(terminal: Terminal, options: ProjectOption): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const now = unixMs(systemClock.now());
    const endpoints = await listWebhookEndpoints(db, project.id);
    const ids = endpoints.map(({ id }) => id);
    const activities = await findEndpointActivity(db, ids);
    const secrets = await findActiveSecrets(db, ids, now);
    const listed = endpoints.map((endpoint) => ({
      endpoint,
      activity: activities.get(endpoint.id) ?? { waiting: 0, lastAttempt: null },
      secrets: secrets.filter(({ endpoint_id }) => endpoint_id === endpoint.id),
    }));
    const disabled = endpoints.find(({ disabled_at }) => disabled_at !== null);
    return {
      data: { data: listed.map((each) => describe(each, now)) },
      text: formatTable(
        ['ENDPOINT', 'STATUS', 'EVENTS', 'UNDELIVERED', 'LAST ATTEMPT (UTC)', 'SECRETS', 'URL', 'DESCRIPTION'],
        listed.map((each) => toCells(each, now)),
      ),
      ...nextOf(endpoints.length, disabled),
    };
  });
}

function describe({ endpoint, activity, secrets }: Listed, now: UnixMs) {
  const { waiting, lastAttempt } = activity;
  return {
    ...describeEndpoint(endpoint, now),
    undelivered: waiting,
    isUndeliveredMore: waiting >= MAX_WAITING,
    lastAttempt: lastAttempt && {
      attemptedAt: toIso(lastAttempt.attemptedAt),
      latencyMs: lastAttempt.latencyMs,
      status: lastAttempt.status,
      error: lastAttempt.error,
    },
    secrets: secrets.map(({ created_at, ends_at }) => ({
      createdAt: toIso(created_at),
      endsAt: ends_at && toIso(ends_at),
    })),
  };
}

function toCells({ endpoint, activity, secrets }: Listed, now: UnixMs): string[] {
  const { waiting, lastAttempt } = activity;
  const outcome = lastAttempt && (lastAttempt.error?.split(':', 1)[0] ?? `delivered, ${lastAttempt.status}`);
  const ending = secrets.flatMap(({ ends_at }) => (ends_at === null ? [] : [`until ${toMinute(ends_at)}`]));
  return [
    encodeId('whe', endpoint.id),
    statusText(endpoint, now),
    eventTypesText(endpoint.event_types),
    waiting >= MAX_WAITING ? `${MAX_WAITING}+` : String(waiting),
    lastAttempt === null ? 'none' : `${toMinute(lastAttempt.attemptedAt)}, ${outcome}`,
    [String(secrets.length), ...ending].join(', '),
    endpoint.url,
    endpoint.description,
  ];
}

function nextOf(count: number, disabled: WebhookEndpoint | undefined): { next?: string } {
  if (count === 0) return { next: 'no endpoint yet: add one with "quittance webhook add --url …"' };
  if (disabled === undefined) return {};
  const id = encodeId('whe', disabled.id);
  return {
    next: `when the receiver of a disabled endpoint works: quittance webhook test ${id}, then webhook enable ${id}`,
  };
}
