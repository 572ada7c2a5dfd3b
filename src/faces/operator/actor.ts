import type { UnixMs } from '../../core/domain/time.ts';

/** The roles, weakest first: a `viewer` can only read, an `operator` decides about received money, and an `owner` may do everything. */
export const ROLES = ['viewer', 'operator', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/**
 * The person or key that sent a request. `name` (1 to 200 characters) is recorded with each change. `projects` contains the UUIDs of the
 * visible projects; `null` means all. `origin` is where the request came from: a network address, or the name of a machine.
 */
export type Actor = {
  kind: 'cli' | 'console' | 'admin' | 'key';
  name: string;
  role: Role;
  /** The UUID of the person, admin key or API key. */
  id: string | null;
  projects: readonly string[] | null;
  origin: string | null;
  requestId: string | null;
  /** Set only for an admin key that has limits. */
  limits?: KeyLimits;
};

/** When a key expires, and the addresses that it may be used from. `null` means that it never expires, or may be used from anywhere. */
export type KeyLimits = { expiresAt: UnixMs | null; allowedCidrs: readonly string[] | null };

/**
 * Whether an actor may see a project (UUID). Hidden projects are reported as not found, so that a response never reveals that they exist.
 */
export function maySee({ projects }: Actor, projectId: string): boolean {
  return projects === null || projects.includes(projectId);
}

/** Returns the actor for commands. Anyone who can run commands on this machine can reach the database, and therefore has every right. */
export function commandActor(name: string, origin: string | null = null): Actor {
  return { kind: 'cli', name, role: 'owner', id: null, projects: null, origin, requestId: null };
}
