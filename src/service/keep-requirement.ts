import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { AppError } from '../domain/errors.ts';
import type { Logger } from '../runtime/log.ts';
import { requiresSeals } from '../store/db/ledger-identity.ts';

/**
 * Notes in the data directory that its ledger requires seals, and refuses one that doesn't there afterwards, because whoever owns the tables can
 * remove every seal and give the ledger another id. Error: `CONFIG_INVALID`.
 */
export async function keepRequirement(
  { dataDir, rowMacs }: Partial<Pick<Config, 'dataDir' | 'rowMacs'>>,
  ledgerId: string,
  log: Logger,
): Promise<void> {
  if (dataDir === undefined || rowMacs !== 'ledger' || !existsSync(dataDir)) return;
  const path = join(dataDir, 'seals-required');
  if (requiresSeals(ledgerId)) {
    await writeFile(path, `${ledgerId}\n`, { mode: 0o600 }).catch((error: unknown) => {
      log.warn({ err: error }, 'the data directory could not note that the ledger requires seals');
    });
    return;
  }
  if (!existsSync(path)) return;
  throw new AppError(
    'CONFIG_INVALID',
    `${path} says that the ledger of this data directory requires seals, and the ledger ${ledgerId} in the database doesn't: somebody may have changed it. Compare it with a backup. If you use another, older ledger on purpose, set QUITTANCE_ROW_MACS=warn or another QUITTANCE_DATA_DIR`,
  );
}
