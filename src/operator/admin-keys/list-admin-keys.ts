import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { listAdminKeys as list } from '../../store/access/admin-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import type { AdminKeyListView, AdminKeyView } from './views.ts';

/** The keys of the admin API, without their secrets, the oldest first; at most 1,000. */
export async function listAdminKeys({ db, now }: { db: Sql; now(): UnixMs }, _actor: Actor): Promise<AdminKeyListView> {
  const at = now();
  const data = (await list(db)).map(({ id, name, role, projects, allowedCidrs, ...times }): AdminKeyView => {
    const { createdAt, expiresAt, revokedAt, lastUsedAt } = times;
    const isExpired = expiresAt !== null && expiresAt <= at;
    return {
      ...{ adminKeyId: encodeId('adm', id), name, role },
      projects: projects?.map((project) => encodeId('prj', project)) ?? null,
      ...{ expiresAt: expiresAt && toIso(expiresAt), allowedIps: allowedCidrs },
      ...{ status: revokedAt !== null ? 'revoked' : isExpired ? 'expired' : 'active', createdAt: toIso(createdAt) },
      ...{ revokedAt: revokedAt && toIso(revokedAt), lastUsedAt: lastUsedAt && toIso(lastUsedAt) },
    };
  });
  return { data };
}
