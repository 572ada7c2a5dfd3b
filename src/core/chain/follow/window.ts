import type { AccountHex } from '@quittance/tron/address';
import type { ChainBlock, ChainTransfer, Evidence } from '../../domain/chain-block.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import type { ReadBlock } from '../verify/read-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';

/** The logs of a block, as shown by the nodes of one operator. */
type Vote = { origin: string; logs: BlockLogs };

/** A verified block above the solid one. */
export type WindowBlock = {
  number: number;
  id: string;
  parentId: string;
  time: UnixMs;
  producer: AccountHex;
  /**
   * The known producer's key that signed the block, which makes the block count for irreversibility. `null` if only later blocks prove it.
   */
  signer: AccountHex | null;
  /** Needed to check the answers of other nodes; `null` once enough operators agree. */
  examined: ExaminedBlock | null;
  /** Whether the block's header commits to its transactions. If not, its contents rely on the operators in `agreed`. */
  isProven: boolean;
  /** Digest of an unproven block's contents on which the operators agree (64 hex characters). */
  digest: string | null;
  /** Whether the operator compared the block and let it pass, after too many unproven blocks. */
  isPassed: boolean;
  votes: Map<string, Vote>;
  /** The logs on which enough operators agree. */
  agreed: { logs: BlockLogs; evidence: Evidence } | null;
  /** How much of the block is stored in the database as sighted. */
  detected: 'nothing' | 'proven' | 'everything';
  /** Whether an invoice is waiting for the block to become irreversible. */
  hasSighting: boolean;
};

export function toWindowBlock({ node, block, logs, word, digest }: ReadBlock, signer: AccountHex | null): WindowBlock {
  const { number, id, parentId, time, producer } = block;
  return {
    ...{ number, id, parentId, time, producer, signer },
    examined: word === null ? block : null,
    ...{ isProven: block.isProven, digest: digest ?? null, isPassed: false },
    votes: new Map(word === null ? [[node.operator, { origin: node.origin, logs }]] : []),
    agreed: word === null ? null : { logs, evidence: word },
    detected: 'nothing',
    hasSighting: false,
  };
}

/** Adds the logs that a node shows. Once `agreement` operators have shown the same logs, these become the agreed logs. */
export function addVote(block: WindowBlock, node: Node, logs: BlockLogs, agreement: number): void {
  block.votes.set(node.operator, { origin: node.origin, logs });
  settle(block, agreement);
}

/**
 * Sets the agreed logs if enough operators show the same. The part that the header proves is always the same, because logs that contradict
 * it were refused.
 */
export function settle(block: WindowBlock, agreement: number): void {
  if (block.agreed !== null) return;
  for (const { logs } of block.votes.values()) {
    const same = [...block.votes.values()].filter((vote) => vote.logs.digest === logs.digest);
    if (same.length < agreement) continue;
    block.agreed = { logs, evidence: { nodes: same.map(({ origin }) => origin), operatorCount: same.length } };
    block.examined = null;
    block.votes.clear();
    return;
  }
}

/** Returns the block with its certain transfers: all of them, or only the proven ones if other nodes still have to agree. */
export function toChainBlock(block: WindowBlock): ChainBlock {
  const { number, id, parentId, time, producer } = block;
  return { number, id, parentId, time, producer, transfers: certainTransfers(block) };
}

function certainTransfers({ agreed, votes }: WindowBlock): ChainTransfer[] {
  if (agreed !== null) return agreed.logs.transfers;
  const [vote] = votes.values();
  return vote?.logs.transfers.filter(({ isProven }) => isProven) ?? [];
}

/** Whether a block may follow another: it refers to the other as its parent, and is later. */
export function isNext(
  parent: { number: number; id: string; time: UnixMs },
  block: { number: number; parentId: string; time: UnixMs },
): boolean {
  return block.parentId === parent.id && block.number === parent.number + 1 && block.time > parent.time;
}
