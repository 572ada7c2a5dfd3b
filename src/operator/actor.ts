import type { UnixMs } from '../domain/time.ts';

/** What a person or an admin key may do: `viewer` reads, `operator` decides about money that came, `owner` does all. */
export const ROLES = ['viewer', 'operator', 'owner'] as const;
export type Role = (typeof ROLES)[number];

/**
 * The person who asks: the interface, the name (1 to 200 characters, recorded with each change) and the right. `projects`: UUIDs of those
 * that it may see, `null` for all. `origin` is where the request came from (a network address, or the name of a machine).
 */
export type Actor = {
  kind: 'cli' | 'console' | 'admin' | 'key';
  name: string;
  role: Role;
  /** The UUID of the person, of the admin key, or of the key of the API. */
  id: string | null;
  projects: readonly string[] | null;
  origin: string | null;
  requestId: string | null;
  /** The bounds of an admin key that has some. */
  limits?: KeyLimits;
};

/** Until when and from which addresses a key may be used; `null`: without end, from anywhere. */
export type KeyLimits = { expiresAt: UnixMs | null; allowedCidrs: readonly string[] | null };

/** Whether an actor may see what belongs to a project (UUID). What it may not see is answered as what is not there. */
export function maySee({ projects }: Actor, projectId: string): boolean {
  return projects === null || projects.includes(projectId);
}

/** Somebody who can run commands here: that person has the database, and so every right. */
export function commandActor(name: string, origin: string | null = null): Actor {
  return { kind: 'cli', name, role: 'owner', id: null, projects: null, origin, requestId: null };
}
