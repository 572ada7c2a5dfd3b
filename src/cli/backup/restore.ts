import { randomBytes, randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { uuidV7 } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { type Secured, secureCopy } from '../../payments/secure-copy.ts';
import { systemClock } from '../../runtime/clock.ts';
import { raiseAlarm } from '../../store/alarms.ts';
import type { BackupHeader } from '../../store/backup-format.ts';
import type { Authenticity } from '../../store/backup-mac.ts';
import type { Sql } from '../../store/database.ts';
import { takeLedger } from '../../store/ledger-identity.ts';
import { type Restored, restoreBackup } from '../../store/restore.ts';
import { findProjectNetworks } from '../../store/restore-safety.ts';
import { readOperator } from '../operator.ts';
import { readReason } from '../read-reason.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { sealingWith, withDatabase } from '../with-database.ts';
import { describeAuthenticity, type OpenOptions, readOpening } from './open-options.ts';
import { refuseRunning } from './refuse-running.ts';

export type RestoreOptions = OpenOptions & { by?: string; reason?: string };

/**
 * Loads a backup into an empty database. Unless it was a final one, no address in it gets a new invoice ever again: payers may hold
 * amounts that were handed out since.
 */
export async function runRestore(terminal: Terminal, file: string, options: RestoreOptions): Promise<Result> {
  const path = resolve(file);
  const operator = readOperator(options.by, terminal.env);
  const now = () => unixMs(systemClock.now());
  const random = (bytes: number) => randomBytes(bytes);
  const takesUnauthenticated = options.unauthenticated === true;
  const reason = takesUnauthenticated ? readReason(options.reason) : '';
  const finish = async (tx: Sql, { ledger, takenAt }: BackupHeader, { kind }: Authenticity): Promise<Secured> => {
    const { id, firstIndex } = ledger ?? { id: randomUUID(), firstIndex: 0 };
    await takeLedger(tx, { id, firstIndex }, { isAnew: true });
    const origin = `a backup of ${takenAt}${kind === 'authentic' ? '' : ` that no master key vouches for (taken by ${operator}: ${reason})`}`;
    if (ledger?.isFinal !== true) return secureCopy(tx, { now, random, operator }, origin);
    if (kind !== 'authentic') await tellUnauthenticated(tx, origin, now());
    return [];
  };
  return withDatabase(
    terminal,
    async (database) => {
      await refuseRunning(database);
      const { connection, config } = database;
      const opening = await readOpening(terminal, config, options);
      const restored = await restoreBackup({
        connection,
        path,
        finish,
        takesUnauthenticated,
        hooks: sealingWith(config, terminal),
        ...opening,
      });
      const missing = restored.header.masterKeyIds.filter((id) => opening.keyRing?.find(id) === undefined);
      return present(restored, missing);
    },
    { mayCreate: true, mayMigrate: false, takesAnySchema: true, asOwner: true },
  );
}

/** After a restore of another kind `secureCopy` tells it, with what else is to be done. */
async function tellUnauthenticated(tx: Sql, origin: string, now: UnixMs): Promise<void> {
  for (const network of await findProjectNetworks(tx)) {
    await raiseAlarm(tx, network as Network, {
      id: uuidV7(now, randomBytes(10)),
      kind: 'database-restored',
      subject: new Date(now).toISOString(),
      detail: `the database was restored from ${origin}: compare its addresses with those of your wallet ("quittance address list") and its keys and endpoints with those that you made, then close this with "quittance chain acknowledge --alarm database-restored --network ${network}"`,
    });
  }
}

function present(
  { header, authenticity, rowCounts, applied, finished: secured }: Restored & { finished: Secured },
  missing: readonly string[],
): Result {
  const isFinal = header.ledger?.isFinal === true;
  const barred = secured.reduce((sum, each) => sum + each.barred, 0);
  const { release, takenAt } = header;
  return {
    data: {
      takenAt,
      release,
      final: isFinal,
      authenticity: authenticity.kind,
      rowCounts,
      applied,
      barredAddresses: barred,
      missingMasterKeyIds: missing,
    },
    text: formatFields([
      ['backup of', `${takenAt}, made by release ${release}`],
      ['authenticated', describeAuthenticity(authenticity)],
      ['invoices', String(rowCounts['invoices'] ?? 0)],
      ['transfers', String(rowCounts['transfers'] ?? 0)],
      ['migrations applied', applied.length === 0 ? null : applied.join(', ')],
      ['addresses', isFinal ? 'in use as before' : `${barred} out of use for ever, and watched`],
    ]),
    next: [
      ...(missing.length === 0
        ? []
        : [`put the master key back before you start (${missing.join(', ')}): without it webhooks cannot be signed`]),
      ...(isFinal ? ['start the service here, and never again where the backup was made'] : LOST_ADVICE),
    ].join('\n'),
  };
}

const LOST_ADVICE = [
  'what happened since the backup is lost here: start the service, which reads the chain since then, and then',
  '  - add new addresses, or new invoices are refused; never give one again that was added since the backup',
  '  - revoke again keys that were revoked since, and compare the orders of your shop since then: docs/backup.md',
];
