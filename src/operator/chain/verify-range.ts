import type { Hint } from '../../domain/message.ts';
import type { Actor } from '../actor.ts';
import type { ReadSolidDeps } from '../node-connection.ts';
import { compareBlocks, type Difference, describeDifference } from './compare-blocks.ts';
import { heights, type Range, rangeInput } from './read-range.ts';
import { readSolid } from './read-solid.ts';
import type { VerifiedRangeView } from './views.ts';

/** The most differences that are kept: more of them say nothing new. */
const MAX_DIFFERENCES = 1000;

/**
 * Compares the transfers of our addresses in the blocks from `from` to `to` with the ledger, and changes nothing. `hint` says what mends
 * a difference. Errors as of `readSolid`.
 */
export async function verifyRange(
  deps: ReadSolidDeps & { onProgress(blockCount: number, differenceCount: number): void },
  _actor: Actor,
  range: Range,
): Promise<{ view: VerifiedRangeView; hint: Hint | null }> {
  const { db, network, onProgress } = deps;
  const differences: Difference[] = [];
  let done = 0;
  let comparedCount = 0;
  const read = await readSolid(deps, range, async (blocks) => {
    const compared = await compareBlocks(db, network, blocks);
    comparedCount += compared.chainCount;
    differences.push(...compared.differences.slice(0, MAX_DIFFERENCES - differences.length));
    done += blocks.length;
    onProgress(done, differences.length);
  });
  const view = { network, ...range, ...read, comparedCount, differences: differences.map(describeDifference) };
  return { view, hint: differences.length === 0 ? null : mending(view) };
}

/** A rescan records missing transfers; an operator judges every other difference. */
function mending({ network, differences, ...range }: VerifiedRangeView): Hint {
  return differences.every(({ kind }) => kind === 'missing')
    ? { command: 'chain rescan', input: heights(range) }
    : { command: 'chain repair', input: rangeInput(network, range) };
}
