import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { type ChainCursor, findCursor } from '../../store/chain/cursor.ts';
import type { Sql } from '../../store/db/database.ts';

/** Where the watcher of a network stands. Error: `NOT_FOUND` before it ever ran. */
export async function followedCursor(db: Sql, network: Network): Promise<ChainCursor> {
  const cursor = await findCursor(db, network);
  if (cursor !== null) return cursor;
  throw new AppError('NOT_FOUND', `${network} was never followed here: start the service first`);
}
