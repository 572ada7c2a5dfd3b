import { randomBytes, randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { unixMs } from '../../domain/time.ts';
import { type Secured, secureCopy } from '../../payments/secure-copy.ts';
import { systemClock } from '../../runtime/clock.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import type { BackupHeader } from '../../store/backup-format.ts';
import type { Sql } from '../../store/database.ts';
import { takeLedger } from '../../store/ledger-identity.ts';
import { restoreBackup } from '../../store/restore.ts';
import { readOperator } from '../operator.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { type CommandDatabase, withDatabase } from '../with-database.ts';
import { refuseRunning } from './refuse-running.ts';

export type RestoreOptions = { by?: string };

/**
 * Loads a backup into an empty database. Unless it was a final one, no address in it gets a new invoice ever again: payers may hold
 * amounts that were handed out since.
 */
export async function runRestore(terminal: Terminal, file: string, options: RestoreOptions): Promise<Result> {
  const path = resolve(file);
  const operator = readOperator(options.by, terminal.env);
  const now = () => unixMs(systemClock.now());
  const random = (bytes: number) => randomBytes(bytes);
  const finish = async (tx: Sql, { ledger, takenAt }: BackupHeader): Promise<Secured> => {
    const { id, firstIndex } = ledger ?? { id: randomUUID(), firstIndex: 0 };
    await takeLedger(tx, { id, firstIndex }, { isAnew: true });
    return ledger?.isFinal === true ? [] : secureCopy(tx, { now, random, operator }, `a backup of ${takenAt}`);
  };
  return withDatabase(
    terminal,
    async (database) => {
      await refuseRunning(database);
      const { connection } = database;
      const { header, rowCounts, applied, finished } = await restoreBackup({ connection, path, finish });
      const missing = await findMissingKeys(database, header, terminal);
      return present(header, { rowCounts, applied, secured: finished, missing });
    },
    { mayCreate: true, mayMigrate: false, takesAnySchema: true },
  );
}

/** Master keys without which something that is sealed in the backup stays closed. */
async function findMissingKeys(
  { config }: CommandDatabase,
  { masterKeyIds }: BackupHeader,
  terminal: Terminal,
): Promise<string[]> {
  if (masterKeyIds.length === 0) return [];
  const ring = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
  return masterKeyIds.filter((id) => ring?.find(id) === undefined);
}

function present(
  header: BackupHeader,
  found: { rowCounts: Record<string, number>; applied: string[]; secured: Secured; missing: string[] },
): Result {
  const { rowCounts, applied, secured, missing } = found;
  const isFinal = header.ledger?.isFinal === true;
  const barred = secured.reduce((sum, each) => sum + each.barred, 0);
  const { release, takenAt } = header;
  return {
    data: {
      takenAt,
      release,
      final: isFinal,
      rowCounts,
      applied,
      barredAddresses: barred,
      missingMasterKeyIds: missing,
    },
    text: formatFields([
      ['backup of', `${takenAt}, made by release ${release}`],
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
