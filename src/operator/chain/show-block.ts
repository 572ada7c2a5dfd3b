import { blockAt } from '../../chain/nodes/ask-block.ts';
import { infosOf } from '../../chain/nodes/ask-infos.ts';
import type { Node } from '../../chain/nodes/node.ts';
import { type ExaminedBlock, examineBlock } from '../../chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers } from '../../chain/verify/producers.ts';
import type { ChainParameters } from '../../chain/verify/read-block.ts';
import { readLogs } from '../../chain/verify/read-logs.ts';
import { digestWord } from '../../chain/verify/settle-unproven.ts';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import type { UnixMs } from '../../domain/time.ts';
import { accountToAddress } from '../../tron/address.ts';

/** A block as one node shows it, whether or not it can be proven. `id` and `parentId` are 64 hex characters. */
export type ShownBlock = {
  node: Node;
  id: string;
  parentId: string;
  time: UnixMs;
  /** Over all that is shown (64 hex): who shows the same has the same. */
  digest: string;
  transactionCount: number;
  /** The USDT transfers in the logs that the node shows. */
  transfers: ChainTransfer[];
  /** Why it cannot be proven; `null` where it can. */
  problem: string | null;
  /** Id and signature belong to the header, and a known producer signed it, whatever stands in the block. */
  isHeaderProven: boolean;
};

/**
 * Shows the content of a block as a node tells it, for a person to judge; no node is paused for it. A self-made block is
 * not proven, whatever it hashes to: a known producer must have signed it. `null`: the node does not have the block.
 * Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE` if the node's answers contradict each other.
 */
export async function showBlock(
  { usdt, slotMs, known }: ChainParameters & { known: KnownProducers },
  node: Node,
  number: number,
): Promise<ShownBlock | null> {
  const shown = await node.ask(blockAt(number));
  if (shown === null) return null;
  const block = examineBlock(shown, { number, slotMs, usdt });
  const logs = readLogs(block, await node.ask(infosOf(number, usdt)), usdt);
  return {
    ...{ node, id: block.id, parentId: block.parentId, time: block.time, digest: digestWord(block, logs) },
    ...{ transactionCount: block.transactions.length, transfers: logs.transfers },
    ...{ problem: problemOf(known, block), isHeaderProven: isSignedBy(known, block) },
  };
}

function problemOf(known: KnownProducers, block: ExaminedBlock): string | null {
  if (!block.isProven) return 'what the node shows as JSON lacks bytes that its header names';
  if (isSignedBy(known, block)) return null;
  const signer = block.signer === null ? 'nobody' : accountToAddress(block.signer);
  return `${signer} signed it, who is no producer that is known`;
}
