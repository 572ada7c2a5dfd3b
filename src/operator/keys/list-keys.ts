import { encodeId } from '../../domain/ids.ts';
import { scopesOf } from '../../domain/scope.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { type ListedApiKey, listApiKeys } from '../../store/access/api-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../projects/select-project.ts';
import type { KeyListView, KeyView } from './views.ts';

/** The keys of a project, without their secrets, the oldest first; at most 1,000. */
export async function listKeys(
  { db, now }: { db: Sql; now(): UnixMs },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<KeyListView> {
  const project = await selectProject(db, actor, projectId);
  return { data: (await listApiKeys(db, project.id)).map((key) => toView(key, now())) };
}

function toView(key: ListedApiKey, now: UnixMs): KeyView {
  return {
    ...{ keyId: encodeId('key', key.id), name: key.name, status: statusOf(key, now) },
    createdAt: toIso(key.createdAt),
    expiresAt: key.expiresAt && toIso(key.expiresAt),
    revokedAt: key.revokedAt && toIso(key.revokedAt),
    lastUsedAt: key.lastUsedAt && toIso(key.lastUsedAt),
    allowedIps: key.allowedCidrs,
    scopes: [...scopesOf(key.scopes)],
  };
}

function statusOf(key: ListedApiKey, now: UnixMs): KeyView['status'] {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && key.expiresAt <= now ? 'expired' : 'active';
}
