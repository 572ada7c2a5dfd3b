import { detectBlocks } from '../../payments/detect-blocks.ts';
import type { Watching } from '../../payments/watching.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import { certainTime, type Following } from './following.ts';
import { toChainBlock, type WindowBlock } from './window.ts';

/**
 * Records the verified blocks above the solid one that the database does not have yet, or not with all their transfers. After a
 * restart that waits until as much is verified as was examined before, so that no invoice loses a sighting that it still has.
 */
export async function detect(watching: Watching, following: Following): Promise<void> {
  const { window, orphaned } = following;
  const firstUnsigned = window.findIndex(({ signer }) => signer === null);
  const signed = firstUnsigned < 0 ? window : window.slice(0, firstUnsigned);
  const first = signed.findIndex(isBehind);
  const blocks = signed.slice(first);
  const [lowest, newest] = [blocks[0], blocks.at(-1)];
  if (first < 0 || lowest === undefined || newest === undefined) return;
  const cursor = await findCursor(watching.db, watching.network);
  if (cursor !== null && newest.number < cursor.head.number) return;
  const open = blocks.filter(({ agreed }) => agreed === null);
  const detected = await detectBlocks(
    watching,
    lowest.number - 1,
    blocks.map(toChainBlock),
    certainTime(following),
    open,
    orphaned.map(toChainBlock),
  );
  orphaned.splice(0);
  for (const block of blocks) {
    block.detected = block.agreed === null ? 'proven' : 'everything';
    block.hasSighting = detected.has(block.number);
  }
}

function isBehind({ detected, agreed }: WindowBlock): boolean {
  return detected === 'nothing' || (detected === 'proven' && agreed !== null);
}
