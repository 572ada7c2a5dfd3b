import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import type { EndpointView } from './views.ts';

/** An endpoint as it is at a time. */
export function viewEndpoint(endpoint: WebhookEndpoint, now: UnixMs): EndpointView {
  const { url, network, description, eventTypes, failingSince, openUntil, disabledAt, disabledReason } = endpoint;
  const status = statusOf(endpoint, now);
  return {
    ...{ endpointId: encodeId('whe', endpoint.id), projectId: encodeId('prj', endpoint.projectId) },
    ...{ network, url, description, eventTypes, status, createdAt: toIso(endpoint.createdAt) },
    failingSince: failingSince && toIso(failingSince),
    pausedUntil: status === 'paused' ? openUntil && toIso(openUntil) : null,
    disabledAt: disabledAt && toIso(disabledAt),
    disabledReason,
  };
}

function statusOf({ disabledAt, openUntil, failingSince }: WebhookEndpoint, now: UnixMs): EndpointView['status'] {
  if (disabledAt !== null) return 'disabled';
  if (openUntil !== null && openUntil > now) return 'paused';
  return failingSince === null ? 'active' : 'failing';
}
