import type { SolidBlock } from '../../domain/chain-block.ts';
import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { recordTransfers, type TransferCounts } from '../../payments/record-transfers.ts';
import type { Recording } from '../../payments/watching.ts';
import { lockCursor } from '../../store/chain/cursor.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';

/** How far the clock of the server that added an address may be ahead of the chain's: far worse than clocks are. */
const CLOCK_MARGIN_MS = 10 * 60_000;

/**
 * Whether a block can concern an address that was added at `createdAt`. The watcher meets blocks when they are new; a rescan meets old
 * ones, and what came before an address was ours is no part of the ledger.
 */
export function concerns(createdAt: UnixMs, blockTime: UnixMs): boolean {
  return blockTime >= createdAt - CLOCK_MARGIN_MS;
}

/**
 * Records the transfers that the ledger missed in contiguous blocks at or below the cursor, with the decisions of
 * `applySolidBlocks`, in one transaction that moves no cursor and needs no lease. It holds the cursor's lock, so a watcher waits
 * for it. Recorded transfers are left alone, so a repeated call is harmless. Returns the counts of the new ones.
 * Errors: `CHAIN_CONTRADICTION` for a block above the cursor, which is the watcher's to record.
 */
export function recordRescanned(
  recording: Recording,
  actor: Actor,
  blocks: readonly SolidBlock[],
): Promise<TransferCounts> {
  return recording.db.transaction(async (tx) => {
    const cursor = await lockCursor(tx, recording.network);
    const above = blocks.find(({ number }) => cursor === null || number > cursor.solid.number);
    if (cursor === null || above !== undefined) {
      const recorded = cursor === null ? 'nothing' : `blocks up to ${cursor.solid.number}`;
      throw new AppError('CHAIN_CONTRADICTION', `block ${above?.number} is rescanned, but ${recorded} was recorded`);
    }
    // An invoice that was CONFIRMING keeps its sighting until that block is solid; its transfer is a duplicate then.
    const { counts } = await recordTransfers(recording, tx, blocks, cursor.head.number, { concerns });
    if (Object.values(counts).some((count) => count > 0)) {
      const { network, now } = recording;
      const detail = { from: blocks[0]?.number, to: blocks.at(-1)?.number, added: counts };
      await recordActions(tx, actor, now(), [{ projectId: null, action: 'chain.rescanned', subject: network, detail }]);
    }
    return counts;
  });
}
