import type { Database } from '../db/database.ts';
import { acquireLease, type Lease, releaseLease, renewLease } from './leases.ts';

/** The right to do what a name says, held by one process at a time, which keeps it again and again. `isHeld`: surely, by our own clock. */
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
