import { type Connection, type Database, openDatabase } from '../../../src/core/store/db/database.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A pool of connections, by the name that PostgreSQL shows. */
export type Session = { readonly name: string; readonly real: Database };

/** The connections of a process. */
export const POOL_SIZE = 6;

/**
 * Passes connections from dead processes to new ones: opening one and planning its first statements costs more than most processes then do
 * with it.
 */
export function createSessions(connection: Connection, time: VirtualTime) {
  const all: Session[] = [];
  const free: Session[] = [];
  return {
    take(): Session {
      const kept = free.pop();
      if (kept !== undefined) return kept;
      const name = `session-${all.length + 1}`;
      const options = { connection, poolSize: POOL_SIZE, applicationName: name, onError: () => undefined };
      const session = { name, real: time.outside(() => openDatabase(options)) };
      all.push(session);
      return session;
    },
    /** It's unused now. */
    giveBack: (session: Session): void => void free.push(session),
    close: async (): Promise<void> => {
      await time.outside(() => Promise.all(all.map(({ real }) => real.close())));
    },
  };
}
