import { resealReceiptKey } from '../checkout/seal-receipt-key.ts';
import type { Config } from '../config.ts';
import { encodeId } from '../domain/ids.ts';
import { unixMs } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { DataDirError } from '../runtime/instance-lock.ts';
import { lockKeyFile, writeKeyFile } from '../runtime/key-file.ts';
import { createMasterKey, type KeyRing } from '../runtime/key-ring.ts';
import { openKeyRing, requireKeyRing } from '../runtime/open-key-ring.ts';
import type { Database } from '../store/database.ts';
import { resealSecrets } from '../webhooks/reseal-secrets.ts';
import { CliError, EXIT } from './cli-error.ts';
import { nameSource } from './master-key-status.ts';
import { formatFields, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

/**
 * Seals every secret under a new key of the file, and takes the old key out of it; or under the first key of QUITTANCE_MASTER_KEY,
 * which only the operator changes. Cut off at any point it is finished by running it again.
 */
export async function rotateMasterKey(terminal: Terminal): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    if (config.masterKeys !== null || config.databaseUrl !== null) {
      const ring = await requireKeyRing(config);
      return report(ring, { ...(await reseal(db, ring)), isNew: false, dropped: [] });
    }
    const lock = await lockAlone(config.dataDir);
    try {
      return await rotateFile(terminal, config, db);
    } finally {
      await lock.release();
    }
  });
}

async function lockAlone(dataDir: string) {
  try {
    return await lockKeyFile(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE')) throw error;
    throw new CliError('CONFLICT', 'the master key is being rotated already: wait until that command is done', {
      cause: error,
    });
  }
}

/** More than one key in the file: an earlier rotation was cut off, which this finishes. */
async function rotateFile(terminal: Terminal, config: Config, db: Database): Promise<Result> {
  const ring = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
  if (ring === null || ring.source.kind !== 'file') {
    throw new CliError(
      'NOT_FOUND',
      `there is no master key in ${config.dataDir}: "quittance master-key status" says more`,
    );
  }
  const { path } = ring.source;
  const isNew = ring.keys().length === 1;
  if (isNew) await writeKeyFile(path, [createMasterKey(), ...ring.keys()]);
  await ring.reload();
  const resealed = await reseal(db, ring);
  const dropped = ring.keys().slice(1);
  if (dropped.length > 0) await writeKeyFile(path, [ring.current()]);
  return report(ring, { ...resealed, isNew, dropped: dropped.map(({ id }) => id) });
}

async function reseal(db: Database, ring: KeyRing): Promise<Resealed> {
  const { resealed, lostEndpoints } = await resealSecrets(db, ring, unixMs(systemClock.now()));
  const receiptKey = await resealReceiptKey(db, ring);
  return {
    resealed: resealed + (receiptKey === 'resealed' ? 1 : 0),
    lostEndpoints,
    isReceiptKeyLost: receiptKey === 'lost',
  };
}

type Resealed = { resealed: number; lostEndpoints: readonly string[]; isReceiptKeyLost: boolean };
type Rotation = Resealed & { isNew: boolean; dropped: readonly string[] };

function report(ring: KeyRing, { resealed, lostEndpoints, isReceiptKeyLost, isNew, dropped }: Rotation): Result {
  const source = nameSource(ring.source);
  const droppable =
    ring.source.kind === 'setting'
      ? ring
          .keys()
          .slice(1)
          .map(({ id }) => id)
      : [];
  const endpoints = lostEndpoints.map((id) => encodeId('whe', id));
  const lost = [...endpoints, ...(isReceiptKeyLost ? ['the signing key of receipts'] : [])];
  return {
    data: {
      source,
      keyId: ring.current().id,
      isNew,
      resealed,
      dropped,
      droppable,
      lostEndpoints: endpoints,
      isReceiptKeyLost,
    },
    text: formatFields([
      ['keys from', source],
      ['key', `${ring.current().id}${isNew ? ' (new)' : ''}`],
      ['secrets sealed anew', String(resealed)],
      ['dropped', dropped.length === 0 ? null : dropped.join(', ')],
      ['can be dropped', droppable.length === 0 ? null : droppable.join(', ')],
      ['cannot be opened', lost.length === 0 ? null : lost.join(', ')],
    ]),
    ...hint(ring, { isNew, droppable, endpoints, isReceiptKeyLost }),
    exitCode: lost.length === 0 ? EXIT.ok : EXIT.failed,
  };
}

function hint(
  ring: KeyRing,
  {
    isNew,
    droppable,
    endpoints,
    isReceiptKeyLost,
  }: { isNew: boolean; droppable: readonly string[]; endpoints: readonly string[]; isReceiptKeyLost: boolean },
): { next?: string } {
  if (endpoints.length > 0) {
    return {
      next: 'these endpoints have secrets that no key opens: add their key, or if it is lost for ever, give each a new secret with "quittance webhook rotate --key-is-lost"',
    };
  }
  if (isReceiptKeyLost) {
    return {
      next: 'no key opens the signing key of receipts: add its key, or if it is lost for ever, make a new signing key with "quittance receipt rotate --key-is-lost"',
    };
  }
  if (droppable.length > 0) {
    return { next: 'take the other keys out of QUITTANCE_MASTER_KEY once every process has this one first' };
  }
  if (ring.source.kind === 'setting') return {};
  if (isNew) return { next: 'backups of the database from before need the former file; make a new backup of both' };
  return { next: 'a rotation that was cut off is finished now; run this again for another new key' };
}
