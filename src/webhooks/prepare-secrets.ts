import { AppError } from '../domain/errors.ts';
import { encodeId } from '../domain/ids.ts';
import type { UnixMs } from '../domain/time.ts';
import type { KeyRing, KeySource } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import type { Database, Sql } from '../store/database.ts';
import { clearPlainSecret, countSecretsByKey, lockPlainSecrets, stopSealing } from '../store/webhook-secrets.ts';
import { storeEndpointSecret } from './endpoint-secrets.ts';
import { parseSecret } from './sign.ts';

type Deps = {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  now(): UnixMs;
  random(size: number): Uint8Array;
};

/**
 * What must be so before anything is signed: this process has the keys of the secrets that sign, and the secrets that a former
 * release stored as plain text are sealed. Throws an AppError `CONFIG_INVALID` where keys are missing.
 */
export async function prepareSecrets(deps: Deps): Promise<void> {
  // First, so that nothing is sealed by a process that was given the wrong keys.
  await refuseMissingKeys(deps);
  let count = 0;
  for (;;) {
    const sealed = await deps.db.transaction((tx) => sealPlainBatch(tx, deps));
    if (sealed === 0) break;
    count += sealed;
  }
  if (count === 0) return;
  deps.log.info({ endpoints: count }, 'webhook secrets that a former release stored as plain text are sealed now');
  // Another process may have sealed some of them meanwhile, with keys of its own.
  await refuseMissingKeys(deps);
}

/** Batches of all processes take turns: when one finds none left, none is left in anyone's hands either. */
async function sealPlainBatch(tx: Sql, { keyRing, log, now, random }: Deps): Promise<number> {
  await stopSealing(tx);
  await keyRing.reload();
  const batch = await lockPlainSecrets(tx);
  for (const { endpointId, secret, isReplaced } of batch) {
    const endpoint = encodeId('whe', endpointId);
    if (isReplaced) log.warn({ endpoint }, 'a webhook endpoint got a new secret before the former one was sealed');
    else if (isSecret(secret)) await storeEndpointSecret(tx, keyRing, { endpointId, secret, now: now(), random });
    else log.error({ endpoint }, 'a webhook endpoint has a malformed secret, which never signed; rotate it');
    await clearPlainSecret(tx, endpointId);
  }
  return batch.length;
}

function isSecret(text: string): boolean {
  try {
    parseSecret(text);
    return true;
  } catch {
    return false;
  }
}

/** The ids of master keys that sign and are not at hand, and how many secrets each has sealed. */
export async function findMissingKeys(
  { db, keyRing }: { db: Sql; keyRing: KeyRing },
  now: UnixMs,
): Promise<{ id: string; secrets: number }[]> {
  const counted = [...(await countSecretsByKey(db, now))];
  return counted
    .filter(([id, { signing }]) => signing > 0 && keyRing.find(id) === undefined)
    .map(([id, { signing }]) => ({ id, secrets: signing }));
}

async function refuseMissingKeys({ db, keyRing, now }: Deps): Promise<void> {
  const missing = await findMissingKeys({ db, keyRing }, now());
  if (missing.length === 0) return;
  const shown = missing.slice(0, MAX_SHOWN).map(({ id, secrets }) => `${id} (secrets: ${secrets})`);
  const has = keyRing.keys().map(({ id }) => id);
  throw new AppError(
    'CONFIG_INVALID',
    `webhooks are signed with secrets that this process cannot open: missing is the master key ${shown.join(', ')}, and ${describeSource(keyRing.source)} has ${has.join(', ')}. ` +
      `${REMEDIES[keyRing.source.kind]} If a key is lost for ever, run "quittance webhook rotate" for each endpoint.`,
  );
}

/** More than a few are the same mistake. */
const MAX_SHOWN = 5;

function describeSource(source: KeySource): string {
  return source.kind === 'file' ? `the file ${source.path}` : 'QUITTANCE_MASTER_KEY';
}

const REMEDIES = {
  file: 'Add the lines of the file master-key that was there before, from a backup.',
  setting: 'Add it to QUITTANCE_MASTER_KEY, behind a comma.',
} as const;
