import { lockPatiently } from '../../runtime/instance-lock.ts';
import type { Logger } from '../../runtime/log.ts';
import { createParts } from '../../runtime/parts.ts';
import type { Connection } from '../db/database.ts';
import { startEmbeddedPostgres } from './embedded.ts';
import { endedByItself } from './error.ts';

/** A service's database. `owner` creates and changes its tables; only an embedded database has one. */
export type ServiceDatabase = { connection: Connection; owner?: Connection; stop(): Promise<void> };

/** A management command holds the lock for less time than this. */
const COMMAND_PATIENCE = { patienceMs: 4000, pollMs: 100 };

/** Locks a data directory for a service and runs its database. `fail` is called with the reason if the database exits unexpectedly. */
export async function startServiceDatabase({
  dataDir,
  log,
  needsOwnUser,
  fail,
}: {
  dataDir: string;
  log: Logger;
  needsOwnUser: boolean;
  fail(error: unknown): void;
}): Promise<ServiceDatabase> {
  const parts = createParts();
  const lock = await lockPatiently(dataDir, COMMAND_PATIENCE);
  await parts.add({ stop: () => lock.release() });
  const onExit = (exit: Parameters<typeof endedByItself>[1]) => fail(endedByItself(dataDir, exit));
  try {
    const postgres = await parts.add(startEmbeddedPostgres({ dataDir, log, needsOwnUser, onExit }));
    return { ...postgres, stop: parts.stop };
  } catch (error) {
    await parts.stop().catch(() => undefined);
    throw error;
  }
}
