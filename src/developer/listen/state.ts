import { createHash } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { AppError } from '../../core/domain/errors.ts';
import { decodeId } from '../../core/domain/ids.ts';
import { DataDirError, lockDataDir } from '../../core/runtime/instance-lock.ts';
import { parseObject } from '../../core/runtime/parse-object.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';

/** Each route has its own state, so forwarding the same key to another URL starts independently. */
export type Route = { server: string; keyId: string; forwardTo: string };

export type ListenState = Awaited<ReturnType<typeof openListenState>>;

/** Returns the state directory according to the XDG base directory specification, which treats a relative path as unset. */
export function stateDirectory(env: NodeJS.ProcessEnv): string {
  const given = env['XDG_STATE_HOME'] ?? '';
  const base = isAbsolute(given) ? given : join(env['HOME'] || homedir(), '.local/state');
  return join(base, 'quittance/listen');
}

/**
 * Opens a route's state: how far forwarding has got. It belongs to this process until `release`. Throws `CONFLICT` if another process holds
 * the lock.
 */
export async function openListenState(dir: string, route: Route) {
  const name = createHash('sha256').update(JSON.stringify(route)).digest('hex').slice(0, 32);
  const path = join(dir, `${name}.json`);
  const lock = await takeLock(dir, `${name}.lock`, route);
  return {
    path,
    /** Returns the last answered event, `null` before the first one, or undefined if nothing was forwarded before. */
    read: () => readState(path, route),
    /** Writes completely or not at all, and is on disk when it returns. */
    write: (cursor: string | null) =>
      writePrivateFile(path, `${JSON.stringify({ version: 1, ...route, cursor })}\n`).catch((error: unknown) => {
        throw unusable(dir, error);
      }),
    release: () => lock.release(),
  };
}

async function takeLock(dir: string, name: string, route: Route): Promise<{ release(): Promise<void> }> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    return await lockDataDir(dir, name);
  } catch (error) {
    if (!(error instanceof DataDirError) || error.code !== 'DATA_DIR_IN_USE') throw unusable(dir, error);
    const holder = /in use by process (\d+)/.exec(error.message)?.[1];
    const who = holder === undefined ? 'another process' : `process ${holder}`;
    throw new AppError(
      'CONFLICT',
      `${who} already forwards this key's events to ${route.forwardTo}: stop it, or forward to another URL`,
      { cause: error },
    );
  }
}

function unusable(dir: string, cause: unknown): AppError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
  return new AppError(
    'INVALID_ARGUMENT',
    `the position in the feed cannot be saved in ${dir} (${code}): free disk space or allow writing there, or set XDG_STATE_HOME to another directory`,
    { cause },
  );
}

/** `{"version":1,"server":"…","keyId":"key_…","forwardTo":"…","cursor":"evt_…"}` */
async function readState(path: string, route: Route): Promise<string | null | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw damaged(path, error);
  });
  if (text === null) return undefined;
  const state = parseObject(text);
  const isOurs = Object.entries({ version: 1, ...route }).every(([name, value]) => state[name] === value);
  const { cursor } = state;
  if (isOurs && cursor === null) return null;
  if (isOurs && typeof cursor === 'string' && decodeId('evt', cursor) !== null) return cursor;
  throw damaged(path);
}

function damaged(path: string, cause?: unknown): AppError {
  return new AppError(
    'INVALID_ARGUMENT',
    `${path} is damaged, so the position in the feed is unknown. Choose where to start, which rewrites the file: --after latest (new events only), --after beginning, or --after evt_…`,
    { cause },
  );
}
