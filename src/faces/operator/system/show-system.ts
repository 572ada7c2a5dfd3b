import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { findApplied } from '../../../core/store/db/migrate.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import type { Actor } from '../actor.ts';
import { findNewestBackup, findRequestedBackup } from '../backup/backup-directory.ts';
import type { SettingListView, SettingView, SystemView } from './views.ts';

/** Shows the settings that the answering process read from its environment when it started. Secrets are never included. */
export async function showEnvironment(
  { settings }: { settings: readonly SettingView[] },
  _actor: Actor,
): Promise<SettingListView> {
  return { data: [...settings] };
}

/** One of the service's processes. `release` is the version of this program. */
export type RunningProcess = { release: string; roles: readonly string[]; startedAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; process: RunningProcess };

/** Shows what runs here, its database, and the age of its last backup. */
export async function showSystem(
  { db, now, process: { release, roles, startedAt } }: Deps,
  _actor: Actor,
): Promise<SystemView> {
  const applied = await findApplied(db);
  const backup = await findNewestBackup(db);
  const requestedAt = await findRequestedBackup(db);
  return {
    ...{ release, node: process.versions.node, postgres: await findServerVersion(db) },
    ...{ schema: applied.at(-1)?.name ?? '', migrations: applied.length },
    ...{ roles: [...roles], startedAt: toIso(startedAt), asOf: toIso(now()) },
    backupRequestedAt: requestedAt && toIso(requestedAt),
    backup: backup && {
      ...{ madeAt: toIso(backup.madeAt), file: backup.file, isFinal: backup.isFinal },
      verifiedAt: backup.verifiedAt && toIso(backup.verifiedAt),
    },
  };
}

/** The database server's own version text, such as `18.1 (Debian 18.1-1)`. */
const findServerVersion = answerOf(
  'system-server-version',
  { version: 'text' },
  `select current_setting('server_version') as version`,
  () => [],
  ([row]) => row?.version ?? '',
);
