import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findApplied } from '../../../core/store/db/migrate.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { refuseChangedSchema } from '../../../core/store/db/schema-changes.ts';
import type { Actor } from '../actor.ts';
import { findNewestBackup, findRequestedBackup } from '../backup/backup-directory.ts';

/** An environment variable. `value` is the effective value. It's `null` for a secret, which is never shown, and if there is no value. */
export type SettingView = { name: string; value: string | null; isSet: boolean; isSecret: boolean };

/** Shows the settings that the answering process read from its environment when it started. Secrets are never included. */
export async function showEnvironment({ settings }: { settings: readonly SettingView[] }, _actor: Actor) {
  return { data: [...settings] };
}

/** One of the service's processes. `release` is the version of this program. */
export type RunningProcess = { release: string; roles: readonly string[]; startedAt: UnixMs };

type Deps = { db: Sql; now(): UnixMs; process: RunningProcess };

/**
 * The answering process and its database. `migrations` is the number of migrations applied to the schema, and `schema` is the newest of
 * them. `backup` is the last backup that this program made, with the time when a backup was last verified completely. Both are from the
 * newest 10,000 actions.
 */
export type SystemView = Awaited<ReturnType<typeof showSystem>>;

/** Shows what runs here, its database, and the age of its last backup. */
export async function showSystem({ db, now, process: { release, roles, startedAt } }: Deps, _actor: Actor) {
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

/** Reports which migrations were applied, and throws `SCHEMA_CHANGED` if anything else has changed the schema. */
export async function checkSchema(
  { db, kind, applied }: { db: Database; kind: 'external' | 'embedded'; applied: readonly string[] },
  _actor: Actor,
) {
  await db.snapshot(refuseChangedSchema);
  return { database: kind, applied: [...applied] };
}
