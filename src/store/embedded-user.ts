import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { EmbeddedPostgresError, errorCode } from './embedded-error.ts';

/** A user of the operating system, by its numbers. */
export type SystemUser = { name: string; uid: number; gid: number };

/**
 * The user to run PostgreSQL as; undefined means as ourselves. PostgreSQL refuses to run as root (`main.c check_root`), so as root
 * it is the owner of an existing cluster, else `postgres`, else `nobody`.
 */
export async function choosePostgresUser(
  clusterOwner: { uid: number; gid: number } | undefined,
): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const users = parsePasswd(await readFile('/etc/passwd', 'utf8').catch(() => ''));
  if (clusterOwner && clusterOwner.uid !== 0) {
    return users.find((user) => user.uid === clusterOwner.uid) ?? { name: `uid ${clusterOwner.uid}`, ...clusterOwner };
  }
  const user = users.find(({ name }) => name === 'postgres') ?? users.find(({ name }) => name === 'nobody');
  if (user) return user;
  throw new EmbeddedPostgresError(
    'EMBEDDED_UNSUPPORTED',
    'PostgreSQL refuses to run as root, and /etc/passwd has neither a user "postgres" nor "nobody" to run it as. ' +
      'Start Quittance as an ordinary user, or set DATABASE_URL.',
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

/** The last characters kept of what a command writes: enough for its error message. */
const MAX_OUTPUT_CHARS = 16_384;

/** Runs a command to its end as the user. `output` is what it wrote on both channels, its last 16 KB. */
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

/** Explains why a process could not even be started. */
export function spawnError(file: string, user: SystemUser | undefined, cause: unknown): EmbeddedPostgresError {
  const code = errorCode(cause);
  if (code === 'EPERM' && user) {
    return new EmbeddedPostgresError(
      'EMBEDDED_UNSUPPORTED',
      `Root may not become user ${user.name} here (${code}), and PostgreSQL refuses to run as root. ` +
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
