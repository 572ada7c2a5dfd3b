import { AppError } from '../domain/errors.ts';
import type { ChainCursor } from '../store/chain/cursor.ts';
import type { Sql } from '../store/db/database.ts';
import { isOfStatement } from '../store/db/unavailable.ts';
import { type Watching, withCursor } from './watching.ts';

/** Whether a transaction failed because of what stands in some row, so that the others can be done without it. */
export function isOfRow(error: unknown): boolean {
  if (error instanceof AppError) return /^(ROW_CHANGED|ADDRESS_DAMAGED|ADDRESS_NOT_VOUCHED)$/.test(error.code);
  return isOfStatement(error);
}

/** Writes items in one go, or so that each that fails is undone alone; returns those, with why. */
export type Write = <Item>(
  tx: Sql,
  items: readonly Item[],
  write: (items: readonly Item[]) => Promise<void>,
) => Promise<{ item: Item; error: unknown }[]>;

const together: Write = async (_tx, items, write) => {
  await write(items);
  return [];
};

/** Each half by itself, down to one, so that a few among thousands cost a few dozen tries. */
const apart: Write = async (tx, items, write) => {
  if (items.length === 0) return [];
  try {
    await tx.script('savepoint apart');
    await write(items);
    // What would be examined at the commit.
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

/** `withCursor`. A transaction that fails because of a row is made once more, in which that row fails alone. */
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
