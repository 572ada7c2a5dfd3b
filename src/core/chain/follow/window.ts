import type { AccountHex } from '@quittance/tron/address';
import type { ChainBlock, ChainTransfer, Evidence } from '../../domain/chain-block.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { LONG_RANGE_BLOCKS, type ReadBlock } from '../verify/read-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';

/** A block's logs, as shown by one operator's nodes. */
type Vote = { origin: string; logs: BlockLogs };

/** A verified block above the solid one. */
export type WindowBlock = {
  number: number;
  id: string;
  parentId: string;
  time: UnixMs;
  producer: AccountHex;
  /**
   * The known producer's key that signed the block, so that the block counts towards irreversibility. It's `null` if only later blocks
   * prove the block.
   */
  signer: AccountHex | null;
  /** Needed to check the answers of other nodes; `null` once enough operators agree. */
  examined: ExaminedBlock | null;
  /** Whether the block's header commits to its transactions. If not, its contents rely on the operators in `agreed`. */
  isProven: boolean;
  /** Digest (64 hex characters) of an unproven block's contents, on which the operators agree. */
  digest: string | null;
  /** Whether the operator checked the block and approved it, after there were too many unproven blocks. */
  isPassed: boolean;
  votes: Map<string, Vote>;
  /** The logs that enough operators agree on. */
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
 * Sets the agreed logs if enough operators show the same logs. The part that the header proves is always the same, because logs that
 * contradict it were refused.
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

/** A block that later blocks link to: the solid one, or a verified one. */
export type Linked = { number: number; id: string; time: UnixMs };

/** Whether a block may follow another one, which is the case if it names that one as its parent and has a later time. */
function isNext(parent: Linked, block: { number: number; parentId: string; time: UnixMs }): boolean {
  return block.parentId === parent.id && block.number === parent.number + 1 && block.time > parent.time;
}

/** Maximum number of blocks waiting for agreement: the blocks of half an hour, at most about 100 MB. */
const MAX_OPEN_BLOCKS = 600;
/**
 * Maximum number of verified blocks above the solid block: the blocks of four hours while too few producers are working, at most about 160
 * MB.
 */
const MAX_WINDOW_BLOCKS = 4800;
/** This is longer than any branch that Quittance walks back. */
const MAX_ORPHANED = 200;

export type ChainWindow = ReturnType<typeof createWindow>;

/**
 * Holds the verified blocks above the newest recorded one (`base`), each linked to its parent, with the newest last. Nothing in it is
 * stored in the database. `judgedUpTo` is the height up to which blocks were read with the current successor of the USDT contract; infinity
 * means all blocks.
 */
export function createWindow(solid: Linked, judgedUpTo: number) {
  let base = solid;
  let judged = judgedUpTo;
  const blocks: WindowBlock[] = [];
  /** Examined blocks that were orphaned, but aren't marked as orphaned in the database yet. Only the newest are kept. */
  const orphaned: WindowBlock[] = [];
  const tip = (): Linked => blocks.at(-1) ?? base;
  const countOpen = () => blocks.filter(({ agreed }) => agreed === null).length;
  const replaceFrom = (place: number, ...others: readonly WindowBlock[]): void => {
    const gone = blocks.splice(place, Number.POSITIVE_INFINITY, ...others);
    orphaned.push(...gone.filter(({ detected }) => detected !== 'nothing'));
    orphaned.splice(0, orphaned.length - MAX_ORPHANED);
  };
  /** Returns the time of the newest block before the first open or unjudged block, or the solid block's time if there's none. */
  const timeBefore = (isOpen: (block: WindowBlock) => boolean): UnixMs => {
    const first = blocks.findIndex((block) => block.number > judged || isOpen(block));
    const last = first < 0 ? blocks.at(-1) : blocks[first - 1];
    return (last ?? base).time;
  };
  return {
    blocks: blocks as readonly WindowBlock[],
    orphaned: orphaned as readonly WindowBlock[],
    /** Returns the newest recorded block. */
    base: (): Linked => base,
    /** Returns the newest verified block. */
    tip,
    /** Returns how many blocks are waiting for the operators' agreement. */
    countOpen,
    /** Whether blocks must be recorded before more are read. */
    isFull: () =>
      countOpen() + LONG_RANGE_BLOCKS > MAX_OPEN_BLOCKS || blocks.length + LONG_RANGE_BLOCKS > MAX_WINDOW_BLOCKS,
    /** Whether new blocks would form a single chain on top of the window. */
    couldAppend: (others: readonly { number: number; id: string; parentId: string; time: UnixMs }[]) =>
      others.every((block, index) => isNext(others[index - 1] ?? tip(), block)),
    /** Whether the window is a single chain that starts at the solid block. Only a linked block counts as built on another. */
    isLinked: () => blocks.every((block, index) => isNext(blocks[index - 1] ?? base, block)),
    /** Adds a block at the end. Returns `false` if it isn't linked to the newest one, and then adds nothing. */
    append: (block: WindowBlock): boolean => {
      if (!isNext(tip(), block)) return false;
      blocks.push(block);
      return true;
    },
    /** Replaces the blocks from index `place` onwards. */
    replaceFrom,
    /** Drops all blocks, so that they are read again. */
    drop: () => replaceFrom(0),
    /** Call this when the `count` lowest blocks have been recorded. */
    onRecorded: (count: number) => {
      const last = blocks[count - 1];
      if (last === undefined) return;
      base = { number: last.number, id: last.id, time: last.time };
      blocks.splice(0, count);
    },
    /** Call this when the height up to which blocks were read with the current successor is known. */
    onJudged: (upTo: number) => {
      judged = upTo;
    },
    /**
     * Call this when the certain transfers of these blocks, and the orphaned blocks, are in the database. `heights` are the heights of the
     * blocks with sightings.
     */
    onSighted: (sighted: readonly WindowBlock[], heights: ReadonlySet<number>) => {
      orphaned.splice(0);
      for (const block of sighted) {
        block.detected = block.agreed === null ? 'proven' : 'everything';
        block.hasSighting = heights.has(block.number);
      }
    },
    /** Call this when the database contains unexpected blocks, so that all blocks are stored again. */
    onSightingsLost: () => {
      for (const block of blocks) block.detected = 'nothing';
    },
    /**
     * Returns the time up to which all transfers are certain. After this time, a block that is still waiting for agreement may contain a
     * payment.
     */
    certainTime: () => timeBefore(({ agreed }) => agreed === null),
    /**
     * Returns the time up to which all transfers are certain and in the database. An invoice whose deadline is after this time must not
     * expire yet. After a restart, blocks are verified again before they are sighted again, and only sightings in the database can change
     * an invoice.
     */
    detectedTime: () => timeBefore(({ agreed, detected }) => agreed === null || detected !== 'everything'),
  };
}
