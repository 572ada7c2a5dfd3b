import { constants } from 'node:fs';
import { lstat, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../runtime/private-file.ts';
import { dataPath, LOCATION_FILE } from './cluster.ts';
import { errorCode, readIfExists } from './error.ts';
import { isServed } from './postmaster.ts';
import { removeAsOwner, runAs, type SystemUser } from './user.ts';

/** Where root keeps databases whose data directory the user of PostgreSQL cannot reach, each under a hash of that directory's path. */
export const SHARED_DIR = '/var/lib/quittance';

/** The names that `chooseHome` and `createCluster` give. Other entries, such as the binaries, are no databases. */
const HOME = /^[0-9a-f]{16}(?:\.(?:replaced|draft)-[0-9A-Za-z-]+)?$/;

const RECORD = 'data-directory';
const MAX_RECORD_BYTES = 8192;

/** Records in a database which data directory it belongs to, so that it can be recognized once that directory is gone. */
export async function recordDataDir(home: string, dataDir: string): Promise<void> {
  if ((await readRecord(home)) !== dataDir) await writePrivateFile(join(home, RECORD), `${dataDir}\n`);
}

/**
 * `running`: a PostgreSQL serves it. `used`: its data directory exists and names it. `replaced`: its data directory exists and uses another
 * database. `orphaned`: its data directory is gone. `unknown`: no release that records the data directory has started it.
 */
export type SharedHome = {
  home: string;
  dataDir: string | null;
  state: 'running' | 'used' | 'replaced' | 'orphaned' | 'unknown';
  bytes: number;
  lastUsedMs: number;
};

/** Lists the databases in a shared directory, the oldest use first. Error: that of reading the directory. */
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

/** Returns `null` for what is no directory. */
async function lookAt(home: string): Promise<SharedHome | null> {
  const found = await lstat(home);
  if (!found.isDirectory()) return null;
  const owner = ownerOf(found);
  const dataDir = await readRecord(home);
  const state = (await isServed(home, owner)) ? 'running' : await stateOf(home, dataDir);
  const { output } = await runAs(owner, 'du', ['-sk', '--', home]);
  // PostgreSQL writes it at each checkpoint and when it stops.
  const control = await stat(join(dataPath(home), 'global', 'pg_control')).catch(() => found);
  return { home, dataDir, state, bytes: 1024 * Number(/^\d+/.exec(output)?.[0] ?? 0), lastUsedMs: control.mtimeMs };
}

async function stateOf(home: string, dataDir: string | null): Promise<SharedHome['state']> {
  if (dataDir === null) return 'unknown';
  try {
    await stat(dataDir);
    // A draft is being made now, or the next start of its data directory deletes it.
    if (home.includes('.draft-')) return 'used';
    return (await readIfExists(join(dataDir, LOCATION_FILE)))?.trim() === home ? 'used' : 'replaced';
  } catch (error) {
    // A disk that fails or a server that is down does not mean that the directory is gone.
    return errorCode(error) === 'ENOENT' ? 'orphaned' : 'used';
  }
}

/** The user of PostgreSQL owns the directory, and could put anything in the place of the record. */
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
 * Deletes a database, with the rights of its owner alone, unless it is being served by now. The lock is the one that a server holds, also
 * in another container. Returns false where something stays.
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
