import type { Database } from '../../store/db/database.ts';
import { findShortage } from '../../store/db/find-shortage.ts';
import type { Troubles } from './troubles.ts';

/** A shortage is over when nothing was refused for so long, and the database has room. */
const QUIET_MS = 10_000;

export type ShortageWatch = {
  /** The database refused a statement, for it is short of what is said. */
  onShortage(what: string): void;
  /** Whether it is over. */
  look(db: Database): Promise<void>;
};

/**
 * Remembers that the database is short of something (disk, memory, connections). Some statements find room while most do not, so that one
 * that is done says nothing: a shortage lasts until none was refused for a while, and one that needs room is done.
 */
export function createShortageWatch({ troubles, now }: { troubles: Troubles; now(): number }): ShortageWatch {
  let refusedAt: number | null = null;
  return {
    onShortage: (what) => {
      refusedAt = now();
      const detail = `${what}: new invoices are refused, and payments are not recorded until it is over`;
      troubles.set('database-full', [{ kind: 'database-full', network: null, subject: '', detail, isReady: false }]);
    },
    look: async (db) => {
      if (refusedAt === null || Math.abs(now() - refusedAt) < QUIET_MS) return;
      // What refuses it says so itself, and the time begins anew.
      await findShortage(db);
      refusedAt = null;
      troubles.set('database-full', []);
    },
  };
}
