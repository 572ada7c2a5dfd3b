import type { Block } from '../chain/block.ts';
import type { LedgerView } from '../chain/ledger.ts';
import { ParameterError } from '../chain/parameters.ts';

/** If a range is longer than this, nothing is returned. */
const MAX_RANGE_BLOCKS = 100;

/** Returns the block for `getblock`. `idOrNum` is a height or an id, or empty for the head. Throws a ParameterError for anything else. */
export function findBlock(view: LedgerView, idOrNum: string): Block | null {
  if (idOrNum === '') return view.block(view.headNumber);
  if (/^[+-]?\d{1,18}$/.test(idOrNum)) {
    const number = Number(idOrNum);
    // The error text is java-tron's own.
    if (number < 0) throw new ParameterError('num must be non-positive number.', null);
    return view.block(number);
  }
  const height = Number.parseInt(idOrNum.slice(0, 16), 16);
  if (!/^[0-9a-f]{64}$/i.test(idOrNum) || height > view.headNumber) {
    throw new ParameterError('id must be legal block hash.', null);
  }
  return blockById(view, idOrNum);
}

/** Returns a block on the current branch. A block id begins with the height. */
export function blockById(view: LedgerView, id: string): Block | null {
  const wanted = id.toLowerCase();
  const block = /^[0-9a-f]{64}$/.test(wanted) ? view.block(Number.parseInt(wanted.slice(0, 16), 16)) : null;
  return block?.id === wanted ? block : null;
}

/** Returns the blocks from `start` up to, but not including, `end`, or null if the range is invalid or too long. */
export function rangeOf(view: LedgerView, start: number, end: number): readonly Block[] | null {
  if (end <= 0 || end <= start || end - start > MAX_RANGE_BLOCKS) return null;
  const blocks: Block[] = [];
  for (let number = start; start >= 0 && number < end; number += 1) {
    const block = view.block(number);
    if (block !== null) blocks.push(block);
  }
  return blocks;
}
