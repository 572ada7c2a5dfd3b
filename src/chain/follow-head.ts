import type { ChainBlock } from '../domain/chain-block.ts';
import { AppError } from '../domain/errors.ts';
import { sightBlocks } from '../payments/sight-blocks.ts';
import type { Watching } from '../payments/watching.ts';
import { type ChainCursor, findCursor } from '../store/chain-cursor.ts';
import { findHeadBlockId } from '../store/head-blocks.ts';
import type { AccountHex } from '../tron/address.ts';
import { inOrder, range } from './follow-solid.ts';
import type { NodeClient } from './node-client.ts';
import { readBlock } from './read-block.ts';

/** Blocks read in one step; while the head is further away the next step follows at once. */
const STEP_BLOCKS = 20;
const PARALLEL_BLOCKS = 4;

export type HeadDeps = { watching: Watching; node: NodeClient; usdt: AccountHex };

/**
 * Examines the blocks between what was examined and the node's head. Where a new block does not build on what was examined,
 * walks back to the common ancestor, at most to the solid block, and replaces the orphaned part in one transaction.
 * Returns whether more is left to read.
 */
export async function followHead({ watching, node, usdt }: HeadDeps, headNumber: number): Promise<boolean> {
  const cursor = await findCursor(watching.db, watching.network);
  if (cursor === null || headNumber <= cursor.head.number) return false;
  const last = Math.min(headNumber, cursor.head.number + STEP_BLOCKS);
  const blocks = await inOrder(range(cursor.head.number + 1, last), PARALLEL_BLOCKS, (number) =>
    readBlock(node, 'wallet', number, usdt),
  );
  const ancestorNumber = await walkBack({ watching, node, usdt }, cursor, blocks);
  await sightBlocks(watching, ancestorNumber, blocks);
  return last < headNumber;
}

/** Puts the replaced part of the new branch in front of `blocks` and returns the height of the common ancestor. */
async function walkBack(
  { watching, node, usdt }: HeadDeps,
  cursor: ChainCursor,
  blocks: ChainBlock[],
): Promise<number> {
  let { number, id } = cursor.head as { number: number; id: string | null };
  while (blocks[0] !== undefined && blocks[0].parentId !== id) {
    if (number <= cursor.solid.number) {
      throw new AppError(
        'CHAIN_CONTRADICTION',
        `block ${number + 1} (${blocks[0].id}) of ${node.url} does not build on the irreversible block ${number} (${id})`,
        { retryable: true },
      );
    }
    blocks.unshift(await readBlock(node, 'wallet', number, usdt));
    number -= 1;
    id =
      number === cursor.solid.number ? cursor.solid.id : await findHeadBlockId(watching.db, watching.network, number);
  }
  return number;
}
