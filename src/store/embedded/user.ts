import { spawn } from 'node:child_process';
import { lstat, readFile, rm, rmdir } from 'node:fs/promises';
import { EmbeddedPostgresError, errorCode } from './error.ts';

/** A user of the operating system, by its numbers. */
export type SystemUser = { name: string; uid: number; gid: number };

/**
 * The user to run PostgreSQL as; undefined means ourselves. PostgreSQL refuses to run as root (`main.c check_root`), so as root it is the
 * owner of an existing cluster, else `quittance`, else `postgres`, else `nobody`. A number that no program has would be better than
 * `nobody`, but initdb asks for a name.
 */
export async function choosePostgresUser(
  clusterOwner: { uid: number; gid: number } | undefined,
): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  return pickUser(await readFile('/etc/passwd', 'utf8').catch(() => ''), clusterOwner);
}

const NAMES = ['quittance', 'postgres', 'nobody'];

/** Picks among the users in the text of a passwd file. Error: EmbeddedPostgresError. */
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

/** The number of `nobody`. Any program may run as this user, and each can read and change the files of all others. */
const NOBODY = 65_534;

/** Why the user should not own a database, and what to do; undefined if nothing speaks against it. `home` is that of an existing cluster. */
export function sharedUserProblem(user: SystemUser | undefined, home: string | undefined): string | undefined {
  if (user === undefined || (user.name !== 'nobody' && user.uid !== NOBODY)) return undefined;
  return (
    `PostgreSQL runs as ${user.name}, a user that other programs may share, and they could read and change the database. Give it its own user: ` +
    `stop Quittance and run "useradd --system --shell /usr/sbin/nologin quittance"` +
    (home === undefined ? '' : `, then "chown -R quittance: ${home}"`)
  );
}

/** Lines of passwd(5), such as `postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash`; root is left out. */
function parsePasswd(text: string): SystemUser[] {
  return text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    if (!name || !/^-?\d+$/.test(uid ?? '') || !/^-?\d+$/.test(gid ?? '') || Number(uid) === 0) return [];
    // macOS writes nobody's id as -2, which the system calls take as an unsigned number.
    return [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }];
  });
}

/**
 * Whether the user may execute the file, or pass through the directory. The kernel is asked by a probe running as that user:
 * mode bits alone do not know about access lists and noexec mounts. Undefined asks for ourselves.
 */
export async function canReach(user: SystemUser | undefined, path: string): Promise<boolean> {
  return (await runAs(user, '/bin/sh', ['-c', 'test -x "$0"', path])).code === 0;
}

/** Whether the user may create and delete in the directory. */
export async function canWrite(user: SystemUser | undefined, path: string): Promise<boolean> {
  return (await runAs(user, '/bin/sh', ['-c', 'test -x "$0" && test -w "$0"', path])).code === 0;
}

/** How processes of the user are started. No variable of ours (DATABASE_URL, PGOPTIONS, LD_LIBRARY_PATH …) reaches them, and `/` is a directory that everyone may stand in. */
export function spawnOptions(user: SystemUser | undefined) {
  return {
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', LC_ALL: 'C' },
    ...(user ? { uid: user.uid, gid: user.gid } : {}),
  };
}

/** The number of last characters kept of a command's output: enough for its error message. */
const MAX_OUTPUT_CHARS = 16_384;

/** Runs a command to its end as the user. `output` is the last 16 KB that it wrote on both channels. */
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
    child.stdin.on('error', () => {}); // It ended without reading; its exit code tells the story.
    child.stdin.end(input);
    child.once('error', (cause) => reject(spawnError(file, user, cause)));
    child.once('close', (code) => resolve({ code, output }));
  });
}

/**
 * Deletes what the user may have written to, with the rights of that user alone: a directory can become a link to anywhere between
 * our look and our step. Undefined is ourselves. A file that cannot be deleted stays.
 */
export async function removeAs(user: SystemUser | undefined, path: string): Promise<void> {
  if (user === undefined) await rm(path, { recursive: true, force: true });
  else await runAs(user, '/bin/sh', ['-c', 'rm -rf -- "$0"', path]);
}

/** Deletes a directory with the rights of its owner, as `removeAs` does. False: a part of it stays. */
export async function removeAsOwner(path: string): Promise<boolean> {
  const { uid, gid } = await lstat(path);
  await removeAs(uid === process.getuid?.() ? undefined : { name: `uid ${uid}`, uid, gid }, path).catch(() => {});
  // Where the directory above is not the user's, only we can take it out.
  await rmdir(path).catch(() => {});
  return lstat(path).then(
    () => false,
    () => true,
  );
}

/** Explains why a process could not even be started. */
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
