import { AppError } from '../domain/errors.ts';
import type { ChainCursor } from '../store/chain/cursor.ts';
import type { Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import { type Watching, withCursor } from './watching.ts';

/** Whether the contents of a row made a transaction fail. If so, the other rows can be processed without that row. */
export function isOfRow(error: unknown): boolean {
  if (error instanceof AppError) return /^(ROW_CHANGED|ADDRESS_DAMAGED|ADDRESS_NOT_VOUCHED)$/.test(error.code);
  return isOfStatement(error);
}

/** Writes items together, but undoes only the items that fail. Returns the failed items with their errors. */
type Write = <Item>(
  tx: Sql,
  items: readonly Item[],
  write: (items: readonly Item[]) => Promise<void>,
) => Promise<{ item: Item; error: unknown }[]>;

const together: Write = async (_tx, items, write) => {
  await write(items);
  return [];
};

/** Retries in halves, down to single items, so that a few failures among thousands of items take only a few dozen attempts. */
const apart: Write = async (tx, items, write) => {
  if (items.length === 0) return [];
  try {
    await tx.script('savepoint apart');
    await write(items);
    // Checks constraints now that would otherwise be checked at commit time.
    await tx.script('set constraints all immediate; set constraints all deferred; release savepoint apart');
    return [];
  } catch (error) {
    if (!isOfRow(error)) throw error;
    await tx.script('rollback to savepoint apart; release savepoint apart');
    const [item] = items;
    if (item !== undefined && items.length === 1) return [{ item, error }];
    const middle = Math.ceil(items.length / 2);
    const first = await apart(tx, items.slice(0, middle), write);
    return [...first, ...(await apart(tx, items.slice(middle), write))];
  }
};

/** Like `withCursor`, but if a row makes the transaction fail, repeats it so that only that row fails. */
export async function withCursorApart<Result>(
  watching: Watching,
  work: (tx: Sql, cursor: ChainCursor, write: Write) => Promise<Result>,
): Promise<Result> {
  try {
    return await withCursor(watching, (tx, cursor) => work(tx, cursor, together));
  } catch (error) {
    if (!isOfRow(error)) throw error;
    return withCursor(watching, (tx, cursor) => work(tx, cursor, apart));
  }
}
