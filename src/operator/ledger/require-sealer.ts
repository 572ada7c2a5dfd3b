import { AppError } from '../../domain/errors.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { mayReseal } from '../../store/db/sealed-rows.ts';

/** What rows are sealed with here. Error: `CONFIG_INVALID`. */
export async function requireSealer(db: Pick<Sql, 'sealer'>): Promise<Sealer> {
  const sealer = await db.sealer();
  if (sealer !== null) return sealer;
  throw new AppError(
    'CONFIG_INVALID',
    'no rows are sealed here: set QUITTANCE_ROW_MACS to warn or require, and QUITTANCE_MASTER_KEY as the service has it',
  );
}

/** Refuses to seal rows that are there as a user who may not. Error: `CONFLICT`. */
export async function requireOwner(db: Database, kind: 'external' | 'embedded'): Promise<void> {
  if (await mayReseal(db)) return;
  throw new AppError(
    'CONFLICT',
    kind === 'embedded'
      ? 'only the owner of the tables seals rows that are there, and the service that runs lets nobody be that: stop it, run this again, and start it'
      : 'only the owner of the tables seals rows that are there: set DATABASE_OWNER_URL for this command',
  );
}
