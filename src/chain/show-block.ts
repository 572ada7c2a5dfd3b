import type { ChainTransfer } from '../domain/chain-block.ts';
import { accountToAddress } from '../tron/address.ts';
import type { Node } from './node.ts';
import { blockAt } from './nodes/ask-block.ts';
import { infosOf } from './nodes/ask-infos.ts';
import { isSignedBy, type KnownProducers } from './producers.ts';
import { type ExaminedBlock, examineBlock } from './prove-block.ts';
import type { ChainParameters } from './read-block.ts';
import { readLogs } from './read-logs.ts';
import { digestWord } from './settle-unproven.ts';

/** A block as one node shows it, whether or not it can be proven. `id` and `parentId` are 64 hex characters. */
export type ShownBlock = {
  node: Node;
  id: string;
  parentId: string;
  /** Over all that is shown (64 hex): who shows the same has the same. */
  digest: string;
  transactionCount: number;
  /** What the logs that the node shows say of USDT. */
  transfers: ChainTransfer[];
  /** Why it cannot be proven; `null` where it can. */
  problem: string | null;
  /** Id and signature belong to the header, and a known producer signed it, whatever stands in the block. */
  isHeaderProven: boolean;
};

/**
 * What a node says stands in a block, for a person to judge; nobody is paused for it. A block of somebody's own is
 * not proven, whatever it hashes to: a known producer must have signed it. `null`: the node does not have the block.
 * Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE` where what it shows contradicts itself.
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
    ...{
      node,
      id: block.id,
      parentId: block.parentId,
      digest: digestWord(block, logs),
      transactionCount: block.transactions.length,
    },
    transfers: logs.transfers,
    problem: problemOf(known, block),
    isHeaderProven: isSignedBy(known, block),
  };
}

function problemOf(known: KnownProducers, block: ExaminedBlock): string | null {
  if (!block.isProven) return 'what the node shows as JSON lacks bytes that its header names';
  if (isSignedBy(known, block)) return null;
  const signer = block.signer === null ? 'nobody' : accountToAddress(block.signer);
  return `${signer} signed it, who is no producer that is known`;
}
