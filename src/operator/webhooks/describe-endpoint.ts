import { parseUrl } from '../../domain/url.ts';
import type { WebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';

type Described = Pick<WebhookEndpoint, 'url' | 'description' | 'eventTypes'>;

/** An endpoint for the record. Path and query of its URL may hold a token. */
export function describeEndpoint({ url, description, eventTypes }: Described) {
  return { origin: originOf(url), description, eventTypes };
}

/** What was changed of an endpoint, for the record; `null` if nothing was. */
export function describeChange(before: Described, after: Described): object | null {
  const [from, to] = [describeEndpoint(before), describeEndpoint(after)];
  const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  const changed = {
    ...(before.url === after.url ? {} : { url: { from: from.origin, to: to.origin } }),
    ...(isSame(from.description, to.description)
      ? {}
      : { description: { from: from.description, to: to.description } }),
    ...(isSame(from.eventTypes, to.eventTypes) ? {} : { eventTypes: { from: from.eventTypes, to: to.eventTypes } }),
  };
  return isSame(changed, {}) ? null : changed;
}

function originOf(url: string): string | null {
  return parseUrl(url)?.origin ?? null;
}
