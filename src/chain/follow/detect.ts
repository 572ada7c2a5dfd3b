import { showPendingEvents } from '../../payments/contract-states.ts';
import { detectBlocks } from '../../payments/detect-blocks.ts';
import type { Watching } from '../../payments/watching.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import { certainTime, type FollowDeps, type Following } from './following.ts';
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

/**
 * Shows what the contract announced above the solid block, once all blocks up to the newest examined one are sighted, and whenever that
 * changed: also when a block that announced something was orphaned.
 */
export async function showContractEvents(deps: FollowDeps, watching: Watching, following: Following): Promise<void> {
  const { window } = following;
  const isSighted =
    window.length > 0 && window.every(({ signer, detected }) => signer === null || detected !== 'nothing');
  if (!isSighted) return;
  const certain = window.filter(({ detected }) => detected !== 'nothing');
  const events = certain.flatMap(({ agreed }) => agreed?.logs.events ?? []);
  const shown = JSON.stringify(events.map(({ name, txId, logIndex }) => [name, txId, logIndex]));
  if (shown === following.shownEvents) return;
  await showPendingEvents({ ...watching, log: deps.log }, events);
  following.shownEvents = shown;
}

function isBehind({ detected, agreed }: WindowBlock): boolean {
  return detected === 'nothing' || (detected === 'proven' && agreed !== null);
}
