import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { TransferCounts } from '../../payments/record-transfers.ts';
import type { Actor } from '../actor.ts';
import type { NodeDeps } from '../node-connection.ts';
import { compareBlocks } from './compare-blocks.ts';
import { type Range, rangeInput } from './read-range.ts';
import { readSolid } from './read-solid.ts';
import { recordRescanned } from './record-rescanned.ts';
import type { RescannedView } from './views.ts';

/**
 * Reads the blocks from `from` to `to` again and records, in chain order, what the ledger missed. To repeat it, or to end it
 * anywhere, is harmless. Errors as of `readSolid`; `CHAIN_CONTRADICTION` where the ledger has what the chain has not, or an
 * operator took back what it has: that is repaired with `quittance chain repair`, and never silently.
 */
export async function rescanRange(
  deps: NodeDeps & { onProgress(blockCount: number, addedCount: number): void },
  actor: Actor,
  range: Range,
): Promise<RescannedView> {
  const added: TransferCounts = { matched: 0, duplicate: 0, unmatched: 0, outgoing: 0 };
  let done = 0;
  const read = await readSolid(deps, range, async (blocks) => {
    const { differences } = await compareBlocks(deps.db, deps.network, blocks);
    const contradiction = differences.find(({ kind }) => kind !== 'missing');
    if (contradiction !== undefined) {
      const { txId, logIndex, blockNumber } = contradiction;
      throw new AppError(
        'CHAIN_CONTRADICTION',
        say`${SEEN[contradiction.kind](`transfer ${txId} (${logIndex}) in block ${blockNumber}`)}: see all of them, and what is done about them, with ${{ command: 'chain repair', input: rangeInput(deps.network, range) }}`,
      );
    }
    const counts = await recordRescanned(deps, actor, blocks);
    for (const kind of Object.keys(added) as (keyof TransferCounts)[]) added[kind] += counts[kind];
    done += blocks.length;
    deps.onProgress(
      done,
      Object.values(added).reduce((sum, count) => sum + count, 0),
    );
  });
  return { network: deps.network, ...range, ...read, added };
}

const SEEN = {
  missing: (transfer: string) => `the ledger misses ${transfer}`,
  'not-on-chain': (transfer: string) => `the ledger has ${transfer}, and the chain does not`,
  wrong: (transfer: string) => `the ledger has ${transfer}, which is another one on the chain`,
  'taken-back': (transfer: string) => `the chain has ${transfer}, which an operator took back`,
} as const;
