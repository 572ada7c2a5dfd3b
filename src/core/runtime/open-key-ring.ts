import { createKeyFile, keyFilePath, readKeyFile } from './key-file.ts';
import { createKeyRing, type KeyRing, KeyRingError, type MasterKey, parseMasterKey } from './key-ring.ts';

/**
 * Returns the keys of this process: the keys that are already open, otherwise the keys in the setting, otherwise the keys in the data
 * directory of an embedded database. Returns `null` for an external database without the setting, because other processes need the same
 * keys, and also if there's no key file and none may be created. `warn` is called if other users could read the file. Errors: KeyRingError,
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

/** Like `openKeyRing`, for callers that can't work without keys. */
export async function requireKeyRing(
  settings: KeySettings,
  warn: (message: string) => void = () => undefined,
): Promise<KeyRing> {
  const ring = await openKeyRing(settings, { warn });
  if (ring !== null) return ring;
  throw new KeyRingError(
    'CONFIG_INVALID',
    'QUITTANCE_MASTER_KEY is not set, and with DATABASE_URL it is needed to seal the secrets of webhook endpoints: create a key with "openssl rand -base64 32", keep it safe, and set it for every process of this database that has the role webhooks, and for commands',
  );
}

/**
 * If `reload` no longer finds a key, the key can still decrypt until the process ends, because a secret that was read before a rotation may
 * be encrypted with it.
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
