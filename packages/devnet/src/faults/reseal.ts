import { type Block, resealBlock } from '../chain/block.ts';
import { OTHER_GENESIS_PARENT } from '../chain/genesis.ts';
import { attackerSigner } from '../evm/keys.ts';
import { hasFault, isResealing, type SettledFault } from './faults.ts';

/** Maps the ids of real blocks to the resealed blocks. */
export type Resealed = Map<string, Block>;

/**
 * Each block needs about 2 kB. A lie about more blocks than this has to be rebuilt from its start from time to time, at a cost of a
 * millisecond per block.
 */
const MAX_REMEMBERED = 20_000;

/**
 * Builds a chain of lies with consistent headers: Merkle roots, ids and parent links. `omitted-transaction-resealed` keeps the producers'
 * signatures, which no longer match; the other two faults sign with the attacker's keys. `trueBlock` returns a block from the real chain,
 * and `lie` changes its contents.
 */
export function resealChain(
  faults: readonly SettledFault[],
  {
    trueBlock,
    lie,
    remembered,
  }: {
    readonly trueBlock: (number: number) => Block | null;
    readonly lie: (block: Block) => Block;
    readonly remembered: Resealed;
  },
): (number: number) => Block | null {
  const isForeign = hasFault(faults, 'other-network');
  const isAttacked = isForeign || hasFault(faults, 'forged-block');
  const from = isForeign
    ? 0
    : Math.max(1, Math.min(...faults.filter(({ kind }) => isResealing(kind)).map((each) => each.fromBlock)));
  return (number) => {
    if (remembered.size > MAX_REMEMBERED) remembered.clear();
    const toSeal: Block[] = [];
    let parentId: string | null = null;
    for (let height = number; height >= from && parentId === null; height -= 1) {
      const block = trueBlock(height);
      if (block === null) return null;
      const known = remembered.get(block.id);
      if (known !== undefined && height === number) return known;
      if (known === undefined) toSeal.unshift(block);
      else parentId = known.id;
    }
    parentId ??= from === 0 ? OTHER_GENESIS_PARENT : (trueBlock(from - 1)?.id ?? '');
    let sealed: Block | null = number < from ? trueBlock(number) : null;
    for (const block of toSeal) {
      const key = isAttacked && block.signature !== '' ? attackerSigner(block.turn).privateKey : null;
      sealed = resealBlock(lie(block), { parentId, key });
      remembered.set(block.id, sealed);
      parentId = sealed.id;
    }
    return sealed;
  };
}
