/**
 * What a key of the API may do. `create`: create and withdraw invoices; `read`: read invoices and transfers; `events`: read the feed of events;
 * `webhooks`: manage the endpoints that events are sent to.
 */
export const SCOPES = ['create', 'read', 'events', 'webhooks'] as const;
export type Scope = (typeof SCOPES)[number];

/** Of a key that was made without any: what keys could do before they had scopes. Where events go must be asked for. */
const DEFAULT_SCOPES: readonly Scope[] = ['create', 'read', 'events'];

/** The scopes of a key, from those that were stored with it. */
export function scopesOf(stored: readonly string[] | null): readonly Scope[] {
  return stored === null ? DEFAULT_SCOPES : SCOPES.filter((scope) => stored.includes(scope));
}
