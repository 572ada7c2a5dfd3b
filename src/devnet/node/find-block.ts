import type { Block } from '../chain/block.ts';
import type { LedgerView } from '../chain/ledger.ts';
import { ParameterError } from '../chain/parameters.ts';

/** A range answers nothing at all when it is asked for more. */
const MAX_RANGE_BLOCKS = 100;

/** The block of `getblock`: `idOrNum` is a height or an id, and the head when empty. Throws a ParameterError for what is neither. */
export function findBlock(view: LedgerView, idOrNum: string): Block | null {
  if (idOrNum === '') return view.block(view.headNumber);
  if (/^[+-]?\d{1,18}$/.test(idOrNum)) {
    const number = Number(idOrNum);
    // The text is java-tron's.
    if (number < 0) throw new ParameterError('num must be non-positive number.', null);
    return view.block(number);
  }
  const height = Number.parseInt(idOrNum.slice(0, 16), 16);
  if (!/^[0-9a-f]{64}$/i.test(idOrNum) || height > view.headNumber) {
    throw new ParameterError('id must be legal block hash.', null);
  }
  return blockById(view, idOrNum);
}

/** A block of the present branch; its id begins with its height. */
export function blockById(view: LedgerView, id: string): Block | null {
  const wanted = id.toLowerCase();
  const block = /^[0-9a-f]{64}$/.test(wanted) ? view.block(Number.parseInt(wanted.slice(0, 16), 16)) : null;
  return block?.id === wanted ? block : null;
}

/** The blocks from `start` to before `end`; null for a range that is none, or too long. */
export function rangeOf(view: LedgerView, start: number, end: number): readonly Block[] | null {
  if (end <= 0 || end <= start || end - start > MAX_RANGE_BLOCKS) return null;
  const blocks: Block[] = [];
  for (let number = start; start >= 0 && number < end; number += 1) {
    const block = view.block(number);
    if (block !== null) blocks.push(block);
  }
  return blocks;
}
