import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import { reencryptTargets } from '../../notify/channel-target.ts';
import { DataDirError } from '../../runtime/instance-lock.ts';
import { lockKeyFile, writeKeyFile } from '../../runtime/key-file.ts';
import { createMasterKey, type KeyRing } from '../../runtime/key-ring.ts';
import { type KeySettings, openKeyRing, requireKeyRing } from '../../runtime/open-key-ring.ts';
import { reencryptReceiptKey } from '../../store/access/encrypt-receipt-key.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { resealRows } from '../ledger/reseal-rows.ts';
import { reencryptTotp } from '../people/totp-secret.ts';
import { recordActions } from '../record-actions.ts';
import { reencryptSecrets } from './reencrypt-secrets.ts';
import { nameSource } from './show-master-keys.ts';
import type { RotatedMasterKeyView } from './views.ts';

/** `warn` hears of a file of keys that others could read, and how far it is. */
type Deps = { db: Database; now(): UnixMs; config: KeySettings; warn(message: string): void };

/**
 * Encrypts every secret and seals every row with a new key of the file, and takes the old key out of it, unless rows are left that it sealed;
 * or with the first key of QUITTANCE_MASTER_KEY, which only the operator changes. Cut off at any point it is finished by running it again. Errors: `NOT_FOUND`, `CONFLICT`.
 */
export async function rotateMasterKey(deps: Deps, actor: Actor): Promise<RotatedMasterKeyView> {
  const { config } = deps;
  if (config.masterKeys === null && config.databaseUrl === null) {
    const lock = await lockAlone(config.dataDir);
    return rotateFile(deps, actor).finally(() => lock.release());
  }
  return reencrypt(deps, actor, await requireKeyRing(config), { isNew: false });
}

async function lockAlone(dataDir: string) {
  try {
    return await lockKeyFile(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE')) throw error;
    throw new AppError('CONFLICT', 'the master key is being rotated already: wait until that command is done', {
      cause: error,
    });
  }
}

/** More than one key in the file: an earlier rotation was cut off or left rows, and this finishes it. */
async function rotateFile(deps: Deps, actor: Actor): Promise<RotatedMasterKeyView> {
  const { config, warn } = deps;
  const ring = await openKeyRing(config, { mayCreate: false, warn });
  if (ring === null || ring.source.kind !== 'file') {
    throw new AppError(
      'NOT_FOUND',
      say`there is no master key in ${config.dataDir}: "${{ command: 'master-key status' }}" says more`,
    );
  }
  const { path } = ring.source;
  const isNew = ring.keys().length === 1;
  if (isNew) await writeKeyFile(path, [createMasterKey(), ...ring.keys()]);
  await ring.reload();
  const view = await reencrypt(deps, actor, ring, { isNew });
  if (view.dropped.length > 0) {
    await writeKeyFile(
      path,
      ring.keys().filter(({ id }) => !view.dropped.includes(id)),
    );
  }
  return view;
}

async function reencrypt(
  { db, now, warn }: Deps,
  actor: Actor,
  ring: KeyRing,
  { isNew }: Pick<RotatedMasterKeyView, 'isNew'>,
): Promise<RotatedMasterKeyView> {
  const { resealed, lostEndpoints } = await reencryptSecrets(db, ring, now());
  const receiptKey = await reencryptReceiptKey(db, ring);
  const totp = await reencryptTotp(db, ring);
  const targets = await reencryptTargets(db, ring);
  const rows = await resealRows({ db, ring, onProgress: warn });
  const former = ring
    .keys()
    .slice(1)
    .map(({ id }) => id);
  const spare = former.filter((id) => !rows.left.has(id));
  const keys = ring.source.kind === 'file' ? { dropped: spare, droppable: [] } : { dropped: [], droppable: spare };
  const [keyId, sealed] = [
    ring.current().id,
    resealed + (receiptKey === 'resealed' ? 1 : 0) + totp.resealed + targets.resealed,
  ];
  const detail = { isNew, resealed: sealed, rows: rows.resealed, ...keys };
  await db.transaction((tx) =>
    recordActions(tx, actor, now(), [{ projectId: null, action: 'master-key.rotated', subject: keyId, detail }]),
  );
  return {
    ...{ source: nameSource(ring.source), keyId, isNew },
    resealed: sealed,
    rows: rows.resealed,
    ...keys,
    needed: [...rows.left].map(([id, count]) => ({ keyId: id, rows: count })),
    lostEndpoints: lostEndpoints.map((id) => encodeId('whe', id)),
    isReceiptKeyLost: receiptKey === 'lost',
    ...(totp.lost.length === 0 ? {} : { lostPeople: totp.lost }),
    ...(targets.lost.length === 0 ? {} : { lostChannels: targets.lost.map((id) => encodeId('chn', id)) }),
  };
}
