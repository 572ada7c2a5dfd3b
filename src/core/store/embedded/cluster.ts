import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../runtime/private-file.ts';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, errorCode, explainFailure, readIfExists } from './error.ts';
import { dataPath, isServed } from './postmaster.ts';
import { canReach, removeAsOwner, runAs, type SystemUser } from './user.ts';

export const SUPERUSER = 'quittance';
export const DATABASE = 'quittance';

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

/**
 * Root's directory for databases whose data directory can't be reached by PostgreSQL's user. Each is named after a hash of its data
 * directory's path.
 */
export const SHARED_DIR = '/var/lib/quittance';

/** Matches the names that `chooseHome` and `createCluster` create. Other entries, such as the binaries, aren't databases. */
const HOME = /^[0-9a-f]{16}(?:\.(?:replaced|draft)-[0-9A-Za-z-]+)?$/;

const RECORD = 'data-directory';
const MAX_RECORD_BYTES = 8192;

/** Records which data directory a database belongs to, so that this is still known after the directory is gone. */
export async function recordDataDir(home: string, dataDir: string): Promise<void> {
  if ((await readRecord(home)) !== dataDir) await writePrivateFile(join(home, RECORD), `${dataDir}\n`);
}

/**
 * `running`: PostgreSQL is serving it. `used`: its data directory exists and refers to the database. `replaced`: its data directory exists
 * but uses another database. `orphaned`: its data directory is gone. `unknown`: it was never started by a release that records the data
 * directory.
 */
export type SharedHome = {
  home: string;
  dataDir: string | null;
  state: 'running' | 'used' | 'replaced' | 'orphaned' | 'unknown';
  bytes: number;
  lastUsedMs: number;
};

/** Lists the databases in a shared directory, least recently used first. Throws if the directory can't be read. */
export async function listSharedHomes(sharedDir: string): Promise<SharedHome[]> {
  const names = await readdir(sharedDir).catch((error) => {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  });
  const homes: SharedHome[] = [];
  for (const name of names.filter((each) => HOME.test(each))) {
    const found = await lookAt(join(sharedDir, name));
    if (found !== null) homes.push(found);
  }
  return homes.sort((a, b) => a.lastUsedMs - b.lastUsedMs);
}

/** Returns `null` if the entry isn't a directory. */
async function lookAt(home: string): Promise<SharedHome | null> {
  const found = await lstat(home);
  if (!found.isDirectory()) return null;
  const owner = ownerOf(found);
  const dataDir = await readRecord(home);
  const state = (await isServed(home, owner)) ? 'running' : await stateOf(home, dataDir);
  const { output } = await runAs(owner, 'du', ['-sk', '--', home]);
  // PostgreSQL writes this file at each checkpoint and when it stops.
  const control = await stat(join(dataPath(home), 'global', 'pg_control')).catch(() => found);
  return { home, dataDir, state, bytes: 1024 * Number(/^\d+/.exec(output)?.[0] ?? 0), lastUsedMs: control.mtimeMs };
}

async function stateOf(home: string, dataDir: string | null): Promise<SharedHome['state']> {
  if (dataDir === null) return 'unknown';
  try {
    await stat(dataDir);
    // A draft is either being created, or will be deleted at the next start with its data directory.
    if (home.includes('.draft-')) return 'used';
    return (await readIfExists(join(dataDir, LOCATION_FILE)))?.trim() === home ? 'used' : 'replaced';
  } catch (error) {
    // If a disk is failing or a file server is unreachable, the directory may still exist.
    return errorCode(error) === 'ENOENT' ? 'orphaned' : 'used';
  }
}

/** Reads the record carefully, because PostgreSQL's user owns the directory and could have replaced the record with anything. */
async function readRecord(home: string): Promise<string | null> {
  const file = await open(join(home, RECORD), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => null,
  );
  try {
    const found = await file?.stat();
    if (!file || !found?.isFile() || found.size > MAX_RECORD_BYTES) return null;
    const text = (await file.readFile('utf8')).trim();
    return text.startsWith('/') ? text : null;
  } finally {
    await file?.close();
  }
}

/**
 * Deletes a database using only its owner's rights, unless the database is in use by now. It uses the lock that a server holds, even a
 * server in another container. Returns false if anything remains.
 */
export async function removeSharedHome(home: string): Promise<boolean> {
  const owner = ownerOf(await lstat(home));
  if (await isServed(home, owner)) return false;
  const { code } = await runAs(owner, '/bin/sh', ['-c', REMOVE, home]);
  return code === 0 && (await removeAsOwner(home));
}

const REMOVE = `
if command -v flock >/dev/null; then
  exec 9>>"$0/postgres.lock" || exit 1
  flock -n 9 || exit 1
fi
rm -rf -- "$0/data"
`;

function ownerOf({ uid, gid }: { uid: number; gid: number }): SystemUser | undefined {
  return uid === process.getuid?.() ? undefined : { name: `uid ${uid}`, uid, gid };
}
