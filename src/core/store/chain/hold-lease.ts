import type { Database } from '../db/database.ts';
import { acquireLease, type Lease, releaseLease, renewLease } from './leases.ts';

/**
 * Holds and renews a lease that only one process can have at a time. `isHeld` returns whether this process certainly holds the lease,
 * according to its own clock.
 */
export function holdLease(db: Database, name: string, holder: string, ttlMs: number) {
  let held: Lease | null = null;
  let surelyUntilMs = 0;
  const isHeld = () => held !== null && performance.now() < surelyUntilMs;
  return {
    isHeld,
    keep: async (): Promise<boolean> => {
      const askedMs = performance.now();
      if (held === null) held = await acquireLease(db, name, holder, ttlMs);
      else if (!(await renewLease(db, held, ttlMs))) held = null;
      if (held !== null) surelyUntilMs = askedMs + ttlMs;
      return isHeld();
    },
    release: async () => {
      if (held !== null) await releaseLease(db, held).catch(() => undefined);
    },
  };
}
