import { setTimeout as delay } from 'node:timers/promises';
import { DataDirError, lockDataDir } from './instance-lock.ts';

/** Management commands use the embedded database for a shorter time than this. */
const PATIENCE_MS = 4000;
const POLL_MS = 100;

/** Locks the data directory for a service. If a command holds the lock, waits until it's done. Throws if another service holds it. */
export async function lockForService(dataDir: string): Promise<{ release(): Promise<void> }> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await lockDataDir(dataDir);
    } catch (error) {
      const isInUse = error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE';
      if (!isInUse || performance.now() > deadline) throw error;
      await delay(POLL_MS);
    }
  }
}
