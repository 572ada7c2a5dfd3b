import type { ChainBlock, ChainTransfer, Evidence } from '../../domain/chain-block.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { AccountHex } from '../../tron/address.ts';
import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import type { ReadBlock } from '../verify/read-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';

/** The logs of a block as the nodes of one operator showed them. */
type Vote = { origin: string; logs: BlockLogs };

/** A verified block above the solid one. */
export type WindowBlock = {
  number: number;
  id: string;
  parentId: string;
  time: UnixMs;
  producer: AccountHex;
  /** The key of a known producer that signed it, so that it counts for irreversibility; `null`: proven only by what is built on it. */
  signer: AccountHex | null;
  /** Needed to check what other nodes show; `null` once enough agree. */
  examined: ExaminedBlock | null;
  /** Its header commits to its transactions. Otherwise all that is in it is the word of `agreed`. */
  isProven: boolean;
  /** Of all that `agreed` say of a block that is not proven, 64 hex. */
  digest: string | null;
  /** A person compared it and let it pass, after too many that nobody can prove. */
  isPassed: boolean;
  votes: Map<string, Vote>;
  /** The logs on which enough operators agree. */
  agreed: { logs: BlockLogs; evidence: Evidence } | null;
  /** How much of it the database has as sighted. */
  detected: 'nothing' | 'proven' | 'everything';
  /** An invoice waits for it to become irreversible. */
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

/** Counts what a node shows; the logs on which `agreement` operators agree are taken. */
export function addVote(block: WindowBlock, node: Node, logs: BlockLogs, agreement: number): void {
  block.votes.set(node.operator, { origin: node.origin, logs });
  settle(block, agreement);
}

/** Takes the logs that enough operators show. The part that the header proves is the same in all of them: other logs were refused. */
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

/** The block with its transfers as far as they are certain: all of them, or while nodes must still agree, the proven ones. */
export function toChainBlock(block: WindowBlock): ChainBlock {
  const { number, id, parentId, time, producer } = block;
  return { number, id, parentId, time, producer, transfers: certainTransfers(block) };
}

function certainTransfers({ agreed, votes }: WindowBlock): ChainTransfer[] {
  if (agreed !== null) return agreed.logs.transfers;
  const [vote] = votes.values();
  return vote?.logs.transfers.filter(({ isProven }) => isProven) ?? [];
}

/** Whether a block may follow another: it names it as its parent, and was made later. */
export function isNext(
  parent: { number: number; id: string; time: UnixMs },
  block: { number: number; parentId: string; time: UnixMs },
): boolean {
  return block.parentId === parent.id && block.number === parent.number + 1 && block.time > parent.time;
}
