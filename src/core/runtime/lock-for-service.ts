import { setTimeout as delay } from 'node:timers/promises';
import { DataDirError, lockDataDir } from './instance-lock.ts';

/** Longer than a management command uses the embedded database. */
const PATIENCE_MS = 4000;
const POLL_MS = 100;

/** Locks the data directory for a service. It waits for a command that holds the lock for a moment. Another service is an error. */
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
