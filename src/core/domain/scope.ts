/**
 * An API key's scopes. `create`: create and withdraw invoices; `read`: read invoices and transfers; `events`: read the event feed;
 * `webhooks`: manage the endpoints that receive events.
 */
export const SCOPES = ['create', 'read', 'events', 'webhooks'] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * A key that was created without scopes has these ones. They cover everything that all keys could do before scopes existed. Managing
 * webhooks must be requested explicitly.
 */
const DEFAULT_SCOPES: readonly Scope[] = ['create', 'read', 'events'];

export function scopesOf(stored: readonly string[] | null): readonly Scope[] {
  return stored === null ? DEFAULT_SCOPES : SCOPES.filter((scope) => stored.includes(scope));
}
