import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { findApplied } from '../../store/db/migrate.ts';
import { answerOf } from '../../store/db/rows-of.ts';
import type { Actor } from '../actor.ts';
import { findNewestBackup, findRequestedBackup } from '../backup/backup-directory.ts';
import type { SettingListView, SettingView, SystemView } from './views.ts';

/** What the environment says to the process that answers, as it was read at its start. It holds no secret. */
export async function showEnvironment(
  { settings }: { settings: readonly SettingView[] },
  _actor: Actor,
): Promise<SettingListView> {
  return { data: [...settings] };
}

/** A process of the service. `release`: the version of this program. */
export type RunningProcess = { release: string; roles: readonly string[]; startedAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; process: RunningProcess };

/** What runs here, over which database, and how old its last backup is. */
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

/** Of the database server, as it says itself: `18.1 (Debian 18.1-1)`. */
const findServerVersion = answerOf(
  'system-server-version',
  { version: 'text' },
  `select current_setting('server_version') as version`,
  () => [],
  ([row]) => row?.version ?? '',
);
