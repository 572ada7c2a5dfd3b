import { hash, timingSafeEqual } from 'node:crypto';
import { readAdminKey } from '../../domain/api-key.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findValidAdminKey, touchAdminKey } from '../../store/access/admin-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';

/** From where a request came, and what it is called. `isAllowed` says whether a list of CIDRs has its address. */
type Asking = Pick<Actor, 'origin' | 'requestId'> & { isAllowed(cidrs: readonly string[]): boolean };

/**
 * The actor that a key of the admin API stands for; `null` alike for one that is unknown, wrong, expired, revoked, or not to be used from
 * there. The key is read anew for each request, so a revoked one is refused at once.
 */
export async function authenticateAdminKey(
  { db, now }: { db: Sql; now(): UnixMs },
  text: string,
  { isAllowed, ...asking }: Asking,
): Promise<Actor | null> {
  const id = readAdminKey(text);
  if (id === null) return null;
  const at = now();
  const key = await findValidAdminKey(db, id, at);
  if (key === null || !timingSafeEqual(hash('sha256', text, 'buffer'), key.secretSha256)) return null;
  if (key.allowedCidrs !== null && !isAllowed(key.allowedCidrs)) return null;
  await touchAdminKey(db, id, at);
  const { name, role, projects, expiresAt, allowedCidrs } = key;
  return { kind: 'admin', name, role, id, projects, limits: { expiresAt, allowedCidrs }, ...asking };
}
