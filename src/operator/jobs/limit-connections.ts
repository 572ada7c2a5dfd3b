import { createTurns } from '../../chain/nodes/turns.ts';
import type { Database } from '../../store/db/database.ts';

/** A database of which work takes so many connections at most; the rest of it waits. */
export function limitConnections(db: Database, atOnce: number): Database {
  const inTurn = createTurns(atOnce);
  return {
    ...db,
    run: (statement, parameters) => inTurn(() => db.run(statement, parameters)),
    transaction: (work) => inTurn(() => db.transaction(work)),
    snapshot: (work) => inTurn(() => db.snapshot(work)),
  };
}
