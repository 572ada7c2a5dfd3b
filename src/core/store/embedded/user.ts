import { spawn } from 'node:child_process';
import { lstat, readFile, rm, rmdir } from 'node:fs/promises';
import { EmbeddedPostgresError, errorCode } from './error.ts';

/** An operating system user, with its numeric ids. */
export type SystemUser = { name: string; uid: number; gid: number };

/**
 * Chooses the user to run PostgreSQL as; undefined means the current user. PostgreSQL refuses to run as root (`main.c check_root`), so root
 * uses an existing cluster's owner, or otherwise `quittance`, `postgres` or `nobody`. An unused uid would be better than `nobody`, but
 * initdb requires a user name.
 */
export async function choosePostgresUser(
  clusterOwner: { uid: number; gid: number } | undefined,
): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return pickUser(await readFile('/etc/passwd', 'utf8').catch(() => ''), clusterOwner);
}

const NAMES = ['quittance', 'postgres', 'nobody'];

/** Chooses among the users in a passwd file. Throws EmbeddedPostgresError. */
export function pickUser(passwd: string, clusterOwner: { uid: number; gid: number } | undefined): SystemUser {
  const users = parsePasswd(passwd);
  if (clusterOwner && clusterOwner.uid !== 0) {
    return users.find((user) => user.uid === clusterOwner.uid) ?? { name: `uid ${clusterOwner.uid}`, ...clusterOwner };
  }
  const [user] = NAMES.flatMap((wanted) => users.filter(({ name }) => name === wanted));
  if (user) return user;
  throw new EmbeddedPostgresError(
    'EMBEDDED_UNSUPPORTED',
    `PostgreSQL refuses to run as root, and /etc/passwd has no user to run it as (${NAMES.join(', ')}). ` +
      'Start Quittance as an ordinary user, or set DATABASE_URL.',
  );
}

/** The uid of `nobody`. Any program may run as this user, and all of them can read and change each other's files. */
const NOBODY = 65_534;

/**
 * Returns why the user shouldn't own a database and what to do, or undefined if the user may own one. `home` belongs to an existing
 * cluster.
 */
export function sharedUserProblem(user: SystemUser | undefined, home: string | undefined): string | undefined {
  if (user === undefined || (user.name !== 'nobody' && user.uid !== NOBODY)) return undefined;
  return (
    `PostgreSQL runs as ${user.name}. Other programs may run as the same user, and could read and change the database. Give PostgreSQL its own user: ` +
    `stop Quittance and run "useradd --system --shell /usr/sbin/nologin quittance"` +
    (home === undefined ? '' : `, then "chown -R quittance: ${home}"`)
  );
}

/** Parses lines of passwd(5), such as `postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash`. Root is left out. */
function parsePasswd(text: string): SystemUser[] {
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    if (!name || !/^-?\d+$/.test(uid ?? '') || !/^-?\d+$/.test(gid ?? '') || Number(uid) === 0) return [];
    // macOS writes nobody's uid as -2, which system calls interpret as an unsigned number.
    return [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }];
  });
}

/**
 * Whether the user may execute the file, or traverse the directory. Runs `test` as that user, because mode bits don't reflect access lists
 * or noexec mounts. Undefined means the current user.
 */
export async function canReach(user: SystemUser | undefined, path: string): Promise<boolean> {
  return (await runAs(user, '/bin/sh', ['-c', 'test -x "$0"', path])).code === 0;
}

/** Whether the user may create and delete files in the directory. */
export async function canWrite(user: SystemUser | undefined, path: string): Promise<boolean> {
  return (await runAs(user, '/bin/sh', ['-c', 'test -x "$0" && test -w "$0"', path])).code === 0;
}

/**
 * The options for starting processes as the user. They get none of our environment variables (DATABASE_URL, PGOPTIONS, LD_LIBRARY_PATH …),
 * and run in `/`, because every user may use it as a working directory.
 */
export function spawnOptions(user: SystemUser | undefined) {
  return {
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' },
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  };
}

/** This many characters from the end of a command's output are kept, which is enough for the error message. */
const MAX_OUTPUT_CHARS = 16_384;

/** Runs a command as the user and waits until it exits. `output` contains the last 16 KB that the command wrote to both streams. */
export function runAs(
  user: SystemUser | undefined,
  file: string,
  args: string[],
  input = '',
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, spawnOptions(user));
    let output = '';
    const collect = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-MAX_OUTPUT_CHARS);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.stdin.on('error', () => {}); // The command has exited without reading its input. Its exit code says enough.
    child.stdin.end(input);
    child.once('error', (cause) => reject(spawnError(file, user, cause)));
    child.once('close', (code) => resolve({ code, output }));
  });
}

/**
 * Deletes files that the user may have changed, using only that user's rights, because a directory could be replaced with a link to
 * anywhere between check and deletion. Undefined means the current user. A file that can't be deleted is kept.
 */
export async function removeAs(user: SystemUser | undefined, path: string): Promise<void> {
  if (user === undefined) await rm(path, { recursive: true, force: true });
  else await runAs(user, '/bin/sh', ['-c', 'rm -rf -- "$0"', path]);
}

/** Deletes a directory with its owner's rights, like `removeAs`. Returns false if any part of it remains. */
export async function removeAsOwner(path: string): Promise<boolean> {
  const { uid, gid } = await lstat(path);
  await removeAs(uid === process.getuid?.() ? undefined : { name: `uid ${uid}`, uid, gid }, path).catch(() => {});
  // If the parent directory doesn't belong to the user, only the current user can remove the directory from it.
  await rmdir(path).catch(() => {});
  return lstat(path).then(
    () => false,
    () => true,
  );
}

/** Explains why a process couldn't be started. */
export function spawnError(file: string, user: SystemUser | undefined, cause: unknown): EmbeddedPostgresError {
  const code = errorCode(cause);
  if (code === 'EPERM' && user) {
    return new EmbeddedPostgresError(
      'EMBEDDED_UNSUPPORTED',
      `Root cannot switch to user ${user.name} here (${code}), and PostgreSQL refuses to run as root. ` +
        'Start Quittance as an ordinary user, or grant CAP_SETUID and CAP_SETGID, or set DATABASE_URL.',
      { cause },
    );
  }
  return new EmbeddedPostgresError(
    'EMBEDDED_UNSUPPORTED',
    `${file} cannot be executed on this system (${code}). The embedded PostgreSQL needs glibc (not musl, as in Alpine) and ` +
      'a file system mounted without noexec. Otherwise set DATABASE_URL.',
    { cause },
  );
}
