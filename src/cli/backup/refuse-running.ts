import { countServiceConnections } from '../../store/backup-tables.ts';
import { CliError } from '../cli-error.ts';
import type { CommandDatabase } from '../with-database.ts';

/** Refuses what must not happen beside a service on the same database. */
export async function refuseRunning({ db, kind, isStartedHere }: CommandDatabase): Promise<void> {
  const count = kind === 'embedded' && isStartedHere ? 0 : await countServiceConnections(db);
  if (count === 0 && (kind === 'external' || isStartedHere)) return;
  throw new CliError(
    'CONFLICT',
    `a service is running over this database (${count} connections): stop all of them first; nothing was changed`,
  );
}
