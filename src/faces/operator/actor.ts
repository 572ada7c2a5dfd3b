import type { UnixMs } from '../../core/domain/time.ts';

/** Roles, weakest first: a `viewer` reads, an `operator` decides about received money, an `owner` may do everything. */
export const ROLES = ['viewer', 'operator', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/**
 * The person or key behind a request. `name` (1 to 200 characters) is recorded with each change. `projects` holds the UUIDs of the visible
 * projects; `null` means all. `origin` is where the request came from: a network address, or the name of a machine.
 */
export type Actor = {
  kind: 'cli' | 'console' | 'admin' | 'key';
  name: string;
  role: Role;
  /** The UUID of the person, the admin key or the API key. */
  id: string | null;
  projects: readonly string[] | null;
  origin: string | null;
  requestId: string | null;
  /** Set only for an admin key that has limits. */
  limits?: KeyLimits;
};

/** When a key expires and which addresses may use it. `null` means that it never expires, or works from anywhere. */
export type KeyLimits = { expiresAt: UnixMs | null; allowedCidrs: readonly string[] | null };

/**
 * Returns whether an actor may see a project (UUID). Hidden projects are reported as not found, so an answer never reveals that they exist.
 */
export function maySee({ projects }: Actor, projectId: string): boolean {
  return projects === null || projects.includes(projectId);
}

/** Anyone who can run commands on this machine can reach the database, and therefore has every right. */
export function commandActor(name: string, origin: string | null = null): Actor {
  return { kind: 'cli', name, role: 'owner', id: null, projects: null, origin, requestId: null };
}
