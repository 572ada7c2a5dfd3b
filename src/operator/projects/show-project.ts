import type { UnixMs } from '../../domain/time.ts';
import { listApiKeys } from '../../store/access/api-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import { listAccountKeys } from '../../store/ledger/account-keys.ts';
import { countAddresses } from '../../store/ledger/addresses.ts';
import { listWebhookEndpoints } from '../../store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from './select-project.ts';
import { viewProject } from './view-project.ts';
import type { ShownProjectView } from './views.ts';

/** A project and how much it has. `hasAccountKeys`: whether it can derive addresses at all. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showProject(
  { db, now }: { db: Sql; now(): UnixMs },
  actor: Actor,
  { projectId }: { projectId: string | undefined },
): Promise<{ view: ShownProjectView; hasAccountKeys: boolean }> {
  const project = await selectProject(db, actor, projectId);
  const [addresses, accountKeys, keys, endpoints] = await Promise.all([
    countAddresses(db, project.id),
    listAccountKeys(db, project.id),
    listApiKeys(db, project.id),
    listWebhookEndpoints(db, project.id),
  ]);
  const view = {
    ...viewProject(project),
    activeAddresses: addresses.active,
    retiredAddresses: addresses.retired,
    autoDerived: accountKeys.reduce((sum, key) => sum + key.autoDerived, 0),
    autoDeriveLimit: accountKeys.reduce((sum, key) => sum + key.autoDeriveLimit, 0),
    activeKeys: keys.filter((key) => key.revokedAt === null && (key.expiresAt ?? Infinity) > now()).length,
    webhookEndpoints: endpoints.filter(({ disabledAt }) => disabledAt === null).length,
  };
  return { view, hasAccountKeys: accountKeys.length > 0 };
}
