import { createKeyFile, keyFilePath, readKeyFile } from './key-file.ts';
import { createKeyRing, type KeyRing, KeyRingError, type MasterKey, parseMasterKey } from './key-ring.ts';

/**
 * The keys of this process: those that are open, else those of the setting, else those of the file in the data directory of an embedded database. `null`: with
 * a database elsewhere the setting is needed, because other processes need the same keys; or there is no file, and none may be made.
 * `warn` hears of a file that others could read. Errors: KeyRingError, DataDirError.
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

/** `keyRing`: the keys that this process has open. */
export type KeySettings = {
  keyRing?: KeyRing;
  masterKeys: readonly string[] | null;
  databaseUrl: string | null;
  dataDir: string;
};

/** `openKeyRing` for callers that cannot work without a key ring. */
export async function requireKeyRing(
  settings: KeySettings,
  warn: (message: string) => void = () => undefined,
): Promise<KeyRing> {
  const ring = await openKeyRing(settings, { warn });
  if (ring !== null) return ring;
  throw new KeyRingError(
    'CONFIG_INVALID',
    'QUITTANCE_MASTER_KEY is not set, and with DATABASE_URL it is needed to seal the secrets of webhook endpoints: make a key with "openssl rand -base64 32", keep it safe, and set it for every process of this database that has the role webhooks, and for commands',
  );
}

/** A key that `reload` no longer finds opens secrets until the process ends: a secret read before a rotation may be sealed with it. */
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
  throw new KeyRingError('KEY_FILE_INVALID', `${path} is gone: put it back from a backup`);
}
