import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../domain/errors.ts';
import type { Database } from '../../store/db/database.ts';
import { countServiceConnections } from '../../store/db/tables.ts';

/** A database over which no service may run; one that was started for this alone has none. */
export type QuietDatabase = { db: Database; kind: 'external' | 'embedded'; isStartedHere: boolean };

/** A connection that was closed takes PostgreSQL a moment, and a service that was stopped just now is no reason to refuse. */
const LOOKS = 10;
const BETWEEN_LOOKS_MS = 100;

/** Refuses what must not happen beside a service on the same database. */
export async function refuseRunning({ db, kind, isStartedHere }: QuietDatabase): Promise<void> {
  if (kind === 'embedded' && isStartedHere) return;
  let count = await countServiceConnections(db);
  for (let looks = 1; kind === 'external' && count > 0 && looks < LOOKS; looks += 1) {
    await delay(BETWEEN_LOOKS_MS);
    count = await countServiceConnections(db);
  }
  if (count === 0 && kind === 'external') return;
  throw new AppError(
    'CONFLICT',
    `a service is running over this database (${count} connections): stop all of them first; nothing was changed`,
  );
}
