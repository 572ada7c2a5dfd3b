import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import type { Diagnosis } from '../../webhooks/diagnosis.ts';
import { formatFields } from '../terminal.ts';
import { toMinute, toSecond } from '../time-text.ts';

/** An endpoint for --json, without its secrets. */
export function describeEndpoint(endpoint: WebhookEndpoint, now: UnixMs) {
  return {
    endpointId: encodeId('whe', endpoint.id),
    projectId: encodeId('prj', endpoint.project_id),
    network: endpoint.network,
    url: endpoint.url,
    description: endpoint.description,
    eventTypes: endpoint.event_types,
    status: statusOf(endpoint, now),
    createdAt: toIso(endpoint.created_at),
    failingSince: endpoint.failing_since && toIso(endpoint.failing_since),
    pausedUntil: statusOf(endpoint, now) === 'paused' ? endpoint.open_until && toIso(endpoint.open_until) : null,
    disabledAt: endpoint.disabled_at && toIso(endpoint.disabled_at),
    disabledReason: endpoint.disabled_reason,
  };
}

/** `paused`: attempts kept failing, so none is made for a while. */
function statusOf(endpoint: WebhookEndpoint, now: UnixMs): 'active' | 'failing' | 'paused' | 'disabled' {
  if (endpoint.disabled_at !== null) return 'disabled';
  if (endpoint.open_until !== null && endpoint.open_until > now) return 'paused';
  return endpoint.failing_since === null ? 'active' : 'failing';
}

/** The status of an endpoint in words. */
export function statusText(endpoint: WebhookEndpoint, now: UnixMs): string {
  const status = statusOf(endpoint, now);
  if (status === 'disabled') return `disabled: ${endpoint.disabled_reason ?? 'no reason was noted'}`;
  const since = endpoint.failing_since === null ? '' : `failing since ${toMinute(endpoint.failing_since)}`;
  if (status !== 'paused' || endpoint.open_until === null) return since || 'active';
  return `paused until ${toSecond(endpoint.open_until)}${since && `, ${since}`}`;
}

export function eventTypesText(eventTypes: readonly string[] | null): string {
  return eventTypes === null ? 'all' : eventTypes.join(',');
}

/** What is wrong with a receiver, the most telling first. Empty for nothing. */
export function diagnosisText(diagnoses: readonly Diagnosis[]): string {
  if (diagnoses.length === 0) return '';
  const parts = diagnoses.map(({ code, certainty, problem, fix }, index) =>
    formatFields([
      [`${index + 1}. ${code}, ${certainty}`, problem],
      ['   to do', fix],
    ]),
  );
  return ['WHAT IS WRONG', ...parts].join('\n');
}
