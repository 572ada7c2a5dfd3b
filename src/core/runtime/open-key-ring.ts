import { constants } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { dataDirError, lockDataDir, lockPatiently } from './instance-lock.ts';
import {
  createKeyRing,
  createMasterKey,
  type KeyRing,
  KeyRingError,
  type MasterKey,
  parseMasterKey,
} from './key-ring.ts';
import { writePrivateFile } from './private-file.ts';

/**
 * Returns this process's keys: the keys that are already open, otherwise the keys in the setting, otherwise the keys in an embedded
 * database's data directory. Returns `null` for an external database without the setting, because other processes need the same keys. Also
 * returns `null` if there's no key file and none may be created. `warn` is called if other users could read the file. Errors: KeyRingError,
 * DataDirError.
 */
export async function openKeyRing(
  { keyRing, masterKeys, databaseUrl, dataDir }: KeySettings,
  { mayCreate = true, warn = () => undefined }: { mayCreate?: boolean; warn?: (message: string) => void } = {},
): Promise<KeyRing | null> {
  if (keyRing !== undefined) {
    await keyRing.reload();
    return keyRing;
  }
  if (masterKeys !== null) return createKeyRing(masterKeys.flatMap((text) => parseMasterKey(text) ?? []));
  if (databaseUrl !== null) return null;
  const path = keyFilePath(dataDir);
  const found = await readKeyFile(path, warn);
  if (found !== null) return ringOfFile(path, found);
  if (!mayCreate) return null;
  await createKeyFile(dataDir);
  return ringOfFile(path, await readAgain(path));
}

/** `keyRing` contains the keys that this process has already opened. */
export type KeySettings = {
  keyRing?: KeyRing;
  masterKeys: readonly string[] | null;
  databaseUrl: string | null;
  dataDir: string;
};

/** Like `openKeyRing`, but for callers that can't work without keys. */
export async function requireKeyRing(
  settings: KeySettings,
  warn: (message: string) => void = () => undefined,
): Promise<KeyRing> {
  const ring = await openKeyRing(settings, { warn });
  if (ring !== null) return ring;
  throw new KeyRingError(
    'CONFIG_INVALID',
    'QUITTANCE_MASTER_KEY is not set, but with DATABASE_URL Quittance requires it to encrypt webhook endpoint secrets: create a key with "openssl rand -base64 32", keep it safe, and set it for commands and for every process on this database that has the webhooks role',
  );
}

/**
 * If `reload` no longer finds a key, the process can still decrypt with this key until it ends, because a secret that was read before a
 * rotation may be encrypted with it.
 */
function ringOfFile(path: string, found: readonly MasterKey[]): KeyRing {
  const known = new Map(found.map((key) => [key.id, key]));
  let ring = createKeyRing(found, { kind: 'file', path });
  return {
    current: () => ring.current(),
    find: (id) => known.get(id),
    keys: () => ring.keys(),
    source: ring.source,
    reload: async () => {
      ring = createKeyRing(await readAgain(path), ring.source);
      for (const key of ring.keys()) known.set(key.id, key);
    },
  };
}

async function readAgain(path: string): Promise<MasterKey[]> {
  const keys = await readKeyFile(path, () => undefined);
  if (keys !== null) return keys;
  throw new KeyRingError('KEY_FILE_INVALID', `${path} is missing: restore it from a backup`);
}

/** Returns the path of the file with an embedded database's master keys. */
export function keyFilePath(dataDir: string): string {
  return join(dataDir, 'master-key');
}

/**
 * Reads the keys from a file with one key per line. The first one encrypts. Returns `null` if the file doesn't exist. If other users can
 * read the file, restricts its mode and calls `warn`. Throws KeyRingError if the file can't be read, or if another user may have created
 * it.
 */
async function readKeyFile(path: string, warn: (message: string) => void): Promise<MasterKey[] | null> {
  const handle = await openToRead(path);
  if (handle === null) return null;
  try {
    await checkAccess(path, handle, warn);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(MAX_BYTES + 1), 0, MAX_BYTES + 1, 0);
    return parseKeys(path, buffer.toString('latin1', 0, bytesRead));
  } finally {
    await handle.close();
  }
}

/** This leaves room for dozens of keys. A rotation needs two. */
const MAX_BYTES = 4096;

/** Opens the file, but refuses a symbolic link and doesn't wait for a pipe. Quittance never creates either of them at this path. */
async function openToRead(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    const reason =
      code === 'ELOOP'
        ? 'is a symbolic link, which Quittance does not follow: put the file itself there, or set QUITTANCE_MASTER_KEY'
        : `cannot be read by uid ${process.getuid?.()} (${code}): run this as the user that runs Quittance, and make that user the file's owner`;
    throw new KeyRingError('KEY_FILE_INVALID', `${path} ${reason}`, { cause: error });
  }
}

async function checkAccess(path: string, handle: FileHandle, warn: (message: string) => void): Promise<void> {
  const file = await handle.stat();
  if (!file.isFile()) throw new KeyRingError('KEY_FILE_INVALID', `${path} is not a regular file: move it elsewhere`);
  const { mode, uid } = file;
  const owner = (await stat(dirname(path))).uid;
  if (![process.getuid?.() ?? uid, 0, owner].includes(uid)) {
    throw new KeyRingError(
      'KEY_FILE_INVALID',
      `${path} belongs to uid ${uid}, who may read and replace the keys: if the file is yours, run "chown ${owner} ${path}"`,
    );
  }
  if ((mode & 0o077) === 0) return;
  const shown = (mode & 0o777).toString(8).padStart(4, '0');
  await handle.chmod(0o600).then(
    () =>
      warn(`${path} had mode ${shown}, so other users could read the master key; Quittance changed the mode to 0600`),
    () => warn(`${path} has mode ${shown}, so other users can read the master key: run "chmod 600 ${path}"`),
  );
}

/** Parses lines such as `MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=`. An editor may have added spaces and carriage returns. */
function parseKeys(path: string, text: string): MasterKey[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const keys = lines.flatMap((line) => parseMasterKey(line.trim()) ?? []);
  if (keys.length > 0 && keys.length === lines.length && text.length <= MAX_BYTES) return keys;
  throw new KeyRingError(
    'KEY_FILE_INVALID',
    `${path} must contain keys of 32 bytes in base64 or hexadecimal, one per line, but ${lines.length === 0 ? 'is empty' : 'contains something else'}: restore the file from a backup`,
  );
}

const KEY_LOCK = 'master-key.lock';
/** Another process creates the file within milliseconds. */
const KEY_PATIENCE = { patienceMs: 5000, pollMs: 20 };

/** Creates the file with a new key, unless another process has created it in the meantime. Errors: DataDirError, KeyRingError. */
async function createKeyFile(dataDir: string): Promise<void> {
  const path = keyFilePath(dataDir);
  const lock = await lockPatiently(dataDir, { fileName: KEY_LOCK, ...KEY_PATIENCE });
  try {
    if ((await readKeyFile(path, () => undefined)) === null) await writeKeyFile(path, [createMasterKey()]);
  } finally {
    await lock.release();
  }
}

/** Locks the key file while a process creates or changes it. Throws a DataDirError with `DATA_DIR_IN_USE` if it's already locked. */
export function lockKeyFile(dataDir: string): Promise<{ release(): Promise<void> }> {
  return lockDataDir(dataDir, KEY_LOCK);
}

/**
 * Replaces the file atomically with one that contains the keys. Returns only when it's on the disk, because losing a key means losing the
 * secrets encrypted with it. The caller must hold the lock.
 */
export async function writeKeyFile(path: string, keys: readonly MasterKey[]): Promise<void> {
  try {
    await writePrivateFile(path, keys.map(({ bytes }) => `${bytes.toString('base64')}\n`).join(''));
  } catch (error) {
    throw dataDirError(dirname(path), error);
  }
}
