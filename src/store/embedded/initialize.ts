import { createHash, randomUUID } from 'node:crypto';
import { lchown, mkdtemp, readdir, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { syncDirectory, writePrivateFile } from '../../runtime/private-file.ts';
import { type Binaries, isOurs } from './binaries.ts';
import { DATABASE, dataPath, LOCATION_FILE, runSingleUser, SUPERUSER } from './cluster.ts';
import { EmbeddedPostgresError } from './error.ts';
import { explainFailure } from './failure.ts';
import { recordDataDir } from './list-databases.ts';
import { canReach, removeAsOwner, runAs, type SystemUser } from './user.ts';

/** Makes the cluster: aside first, then renamed, so that a crash at any moment leaves either none or a whole one. */
export async function createCluster(options: {
  dataDir: string;
  password: string;
  user: SystemUser | undefined;
  binaries: Binaries;
  sharedDir: string;
  log: Logger;
}): Promise<string> {
  const { dataDir, password, user, binaries } = options;
  const home = await chooseHome(options);
  await removeDrafts(home);
  const draft = await mkdtemp(`${home}.draft-`); // mode 0700
  try {
    // Where somebody put a link in its place, it is the link that changes hands.
    if (user) await lchown(draft, user.uid, user.gid);
    if (dirname(home) !== dataDir) await recordDataDir(draft, await realpath(dataDir));
    await initialize(draft, { password, user, binaries });
    await rename(draft, home);
  } catch (error) {
    await removeAsOwner(draft);
    throw error;
  }
  await syncDirectory(dirname(home));
  if (dirname(home) !== dataDir) await writePrivateFile(join(dataDir, LOCATION_FILE), `${home}\n`);
  await syncDirectory(dataDir);
  return home;
}

/** In the data directory, or where that is closed to the user of PostgreSQL, in root's shared directory under a hash of its path. */
async function chooseHome(options: {
  dataDir: string;
  user: SystemUser | undefined;
  sharedDir: string;
  log: Logger;
}): Promise<string> {
  const { dataDir, user, sharedDir, log } = options;
  if (await canReach(user, dataDir)) return join(dataDir, 'postgres');
  if (!user || !(await isOurs(sharedDir)) || !(await canReach(user, sharedDir))) {
    throw new EmbeddedPostgresError(
      'EMBEDDED_UNREACHABLE',
      `User ${user?.name ?? process.getuid?.()} cannot reach the data directory ${dataDir}, nor ${sharedDir}. ` +
        'Use a data directory that everyone may pass through, or set DATABASE_URL.',
    );
  }
  const hash = createHash('sha256')
    .update(await realpath(dataDir))
    .digest('hex')
    .slice(0, 16);
  const home = join(sharedDir, hash);
  if (await stat(home).catch(() => undefined)) {
    // The data directory was deleted and made anew: it begins empty, but nobody asked to delete what it had.
    const aside = `${home}.replaced-${randomUUID()}`;
    await rename(home, aside);
    await recordDataDir(aside, await realpath(dataDir));
    log.warn(
      { aside, dataDir },
      'the data directory is new; the database of an earlier one in the same place was moved aside',
    );
  }
  log.info(
    { home, user: user.name },
    'the user of PostgreSQL cannot reach the data directory; the database is kept elsewhere',
  );
  return home;
}

/** initdb without a sync after each step, the database, and then one sync of all: 0.5 s in place of 2 s on a slow disk. */
async function initialize(
  draft: string,
  { password, user, binaries }: { password: string; user: SystemUser | undefined; binaries: Binaries },
): Promise<void> {
  const data = dataPath(draft);
  const passwordFile = join(draft, 'password');
  await writePrivateFile(passwordFile, password);
  const initdb = join(binaries.root, 'bin', 'initdb');
  // Shared memory as the server's: what is killed here leaves nothing in /dev/shm.
  const locale = ['--encoding=UTF8', '--locale-provider=libc', '--locale=C', '--set=dynamic_shared_memory_type=mmap'];
  const login = [`--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  const init = await runAs(user, initdb, ['--no-sync', '--no-instructions', `--pgdata=${data}`, ...locale, ...login]);
  if (init.code !== 0) throw explainFailure(draft, init.output, 'initdb');
  await rm(passwordFile);
  await runSingleUser(data, { user, binaries }, `create database ${DATABASE}\n`);
  const sync = await runAs(user, initdb, [`--pgdata=${data}`, '--sync-only']);
  if (sync.code !== 0) throw explainFailure(draft, sync.output, 'initdb --sync-only');
}

/**
 * Deletes drafts of initializations killed half-way; the caller holds the lock of the data directory, so none is wanted.
 * An initdb that outlives its Quittance for a moment may still be writing; what is left then goes at the next start.
 */
export async function removeDrafts(home: string): Promise<void> {
  for (const name of await readdir(dirname(home))) {
    if (!name.startsWith(`${basename(home)}.draft-`)) continue;
    await removeAsOwner(join(dirname(home), name));
  }
}
