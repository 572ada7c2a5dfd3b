import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../runtime/private-file.ts';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, errorCode, explainFailure, readIfExists } from './error.ts';
import { canReach, runAs, type SystemUser } from './user.ts';

export const SUPERUSER = 'quittance';
export const DATABASE = 'quittance';

/** The path of PostgreSQL's data directory. A cluster has its own directory, `home`, which also contains PostgreSQL's log. */
export function dataPath(home: string): string {
  return join(home, 'data');
}

/**
 * Finds the data directory's existing cluster, through the location file or in the default place. Returns undefined before the first start.
 */
export async function findCluster(
  dataDir: string,
): Promise<{ home: string; owner: { uid: number; gid: number } } | undefined> {
  const locationPath = join(dataDir, LOCATION_FILE);
  const recorded = (await readIfExists(locationPath))?.trim();
  const home = recorded ?? join(dataDir, 'postgres');
  const found = await stat(home).catch((error) => {
    if (errorCode(error) !== 'ENOENT') throw error;
  });
  if (found) return { home, owner: { uid: found.uid, gid: found.gid } };
  if (recorded === undefined) return undefined;
  throw new EmbeddedPostgresError(
    'EMBEDDED_DAMAGED',
    `The database is missing: according to ${locationPath}, it is in ${recorded}, which does not exist. ` +
      `Restore ${recorded} from a backup, or delete ${locationPath} to start with an empty database.`,
  );
}

export const LOCATION_FILE = 'postgres.location';

/** Checks whether an existing cluster can be used. If not, throws EmbeddedPostgresError with the reason. */
export async function checkCluster(
  found: { home: string; owner: { uid: number } },
  user: SystemUser | undefined,
  binaries: Binaries,
): Promise<void> {
  const { home, owner } = found;
  const uid = user?.uid ?? process.getuid?.();
  if (owner.uid !== uid) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `The database in ${home} belongs to uid ${owner.uid}, but PostgreSQL would run as ${user?.name ?? `uid ${uid}`}. ` +
        `Start Quittance as the user that created it, or run "chown -R ${user?.name ?? uid} ${home}".`,
    );
  }
  if (!(await canReach(user, home))) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `User ${user?.name ?? uid} cannot reach the database in ${home}. Run "chmod o+x" on each parent directory that other users cannot enter.`,
    );
  }
  const version = (await readIfExists(join(dataPath(home), 'PG_VERSION')))?.trim();
  const control = await stat(join(dataPath(home), 'global', 'pg_control')).catch(() => undefined);
  if (!version || !control) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_DAMAGED',
      `The database in ${home} is incomplete (${version ? 'global/pg_control' : 'PG_VERSION'} is missing). ` +
        `Restore it from a backup, or move ${home} elsewhere to start with an empty database.`,
    );
  }
  if (version !== binaries.majorVersion) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_WRONG_VERSION',
      `The database in ${home} was created by PostgreSQL ${version}, but this release includes PostgreSQL ${binaries.majorVersion}. ` +
        `Start the Quittance release that created it, or run PostgreSQL ${version} with it yourself and set DATABASE_URL.`,
    );
  }
}

/** Runs SQL on a stopped cluster, without a password. Each line is one command. */
export async function runSingleUser(
  data: string,
  { user, binaries }: { user: SystemUser | undefined; binaries: Binaries },
  sql: string,
): Promise<void> {
  const { code, output } = await runAs(
    user,
    join(binaries.root, 'bin', 'postgres'),
    ['--single', '-D', data, 'postgres'],
    sql,
  );
  if (code !== 0 || /\b(ERROR|FATAL|PANIC):/.test(output)) throw explainFailure(data, output, 'postgres --single');
}

/**
 * Returns the database superuser's password from `postgres.password`, or creates one. If a cluster's password file was lost, for example
 * because a backup didn't include it, the cluster gets a new password. This is safe, because the files' owner could set one anyway.
 */
export async function readOrCreatePassword(
  dataDir: string,
  resetOn?: { home: string; user: SystemUser | undefined; binaries: Binaries },
) {
  const path = join(dataDir, 'postgres.password');
  const kept = (await readIfExists(path))?.trim();
  if (kept) return kept;
  const password = randomBytes(24).toString('base64url');
  if (resetOn) await runSingleUser(dataPath(resetOn.home), resetOn, `alter role ${SUPERUSER} password '${password}'\n`);
  await writePrivateFile(path, `${password}\n`);
  return password;
}
