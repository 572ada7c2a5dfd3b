import type { AccountHex } from '@quittance/tron/address';
import type { ChainBlock, ChainTransfer, Evidence } from '../../domain/chain-block.ts';
import type { UnixMs } from '../../domain/time.ts';
import { inGroups } from '../../runtime/concurrency.ts';
import { describeNodes, type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { LONG_RANGE_BLOCKS, type ReadBlock, readLogsIfThere, readLogsOf } from '../verify/read-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';
import type { FollowDeps } from './following.ts';

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
type Linked = { number: number; id: string; time: UnixMs };

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

/** A node can be this many blocks behind another without being faulty. */
export const LAG_BLOCKS = 3;
/** Maximum number of blocks whose logs are requested in one step: at the head, and while catching up. */
const STEP_BLOCKS = 4;
const BEHIND_STEP_BLOCKS = 64;
const BEHIND_PAUSE_MS = 250;
const PARALLEL_BLOCKS = 8;
/**
 * If this many blocks are waiting for agreement while catching up, reading pauses for up to `AWAY_MS`. After that, an operator that is
 * still down no longer holds up reading.
 */
const MANY_OPEN_BLOCKS = 64;
const AWAY_MS = 10_000;
/**
 * If the oldest block still waits for agreement after this many block times, an alarm is raised. On a real network, that's within a minute.
 */
const WAITING_BLOCKS = 15;
/** Operators whose answers differ are asked again after this many block times. */
const DISPUTE_BLOCKS = 2;

/** Whether other nodes must confirm the logs, because the header doesn't prove all of them. */
export function needsAgreement({ block, logs }: ReadBlock): boolean {
  const isOpen = block.transactions.some(
    ({ isSuccess, isContract, call }) => isSuccess && isContract !== false && call === null,
  );
  return isOpen || logs.isForwarded || logs.transfers.some(({ isProven }) => !isProven);
}

/** Creates a window block from one node's answer, and adds the answers from the other nodes that already have the block. */
export async function withQuorum(
  deps: FollowDeps,
  read: ReadBlock,
  signer: AccountHex | null,
  others: readonly Node[],
): Promise<WindowBlock> {
  const block = toWindowBlock(read, signer);
  const agreement = needsAgreement(read) ? deps.agreement : 1;
  settle(block, agreement);
  if (block.agreed === null) {
    await Promise.all(others.map((node) => ask(deps, block, read.block, node, { mayLag: true })));
  }
  return block;
}

/** Returns the nodes to ask in addition to the one that provided the blocks. */
export function othersFor({ agreement }: FollowDeps, nodes: readonly Node[], first: Node): Node[] {
  return ofDifferentOperators(
    nodes.filter(({ operator }) => operator !== first.operator),
    agreement - 1,
  );
}

export type Quorum = ReturnType<typeof createQuorum>;

/** Collects the logs that other operators show for the blocks in the window. All times are monotonic. */
export function createQuorum(deps: FollowDeps, window: ChainWindow) {
  const noteWaiting = createWaitingNote(deps);
  let nextMs = 0;
  /** The time at which operators that disagree are asked again. */
  let disputeNextMs = 0;
  /** The time when many blocks started waiting for further operators, or `null` if only a few are waiting. */
  let openSinceMs: number | null = null;

  const gather = async (
    nodes: readonly Node[],
    { isNewestAsked, isBehind }: { isNewestAsked: boolean; isBehind: boolean },
  ): Promise<void> => {
    const asked = isNewestAsked ? window.blocks.slice(0, -1) : window.blocks;
    const open = asked.filter(({ agreed }) => agreed === null).slice(0, isBehind ? BEHIND_STEP_BLOCKS : STEP_BLOCKS);
    const operators = ofDifferentOperators(nodes, nodes.length);
    const nowMs = performance.now();
    await noteWaiting(window.blocks.find(({ agreed }) => agreed === null));
    if (open.length === 0 || operators.length < deps.agreement || nowMs < nextMs) return;
    nextMs = nowMs + (isBehind ? BEHIND_PAUSE_MS : deps.blockMs / 2);
    await inGroups(open, isBehind ? PARALLEL_BLOCKS : 1, async (block) => {
      const { examined } = block;
      if (examined === null) return;
      // If no known key signed a block, other nodes may have a good reason not to have it.
      const mayLag = block.signer === null || block.number > window.tip().number - LAG_BLOCKS;
      const isDisputed = new Set([...block.votes.values()].map(({ logs }) => logs.digest)).size > 1;
      const isRetry = isDisputed && nowMs >= disputeNextMs;
      const silent = operators.filter(({ operator }) => !block.votes.has(operator));
      // An operator may lack a block without a known signer, so all of them are asked.
      const isAnyones = isDisputed || block.signer === null;
      const wanted = isRetry ? operators : isAnyones ? silent : silent.slice(0, deps.agreement - 1);
      await Promise.all(wanted.map((node) => ask(deps, block, examined, node, { mayLag })));
      if (block.agreed === null && isRetry && !mayLag) await logOpen(deps, block);
    });
    if (isBehind && open.some(({ agreed }) => agreed !== null)) nextMs = nowMs;
    if (nowMs >= disputeNextMs) disputeNextMs = nowMs + DISPUTE_BLOCKS * deps.blockMs;
  };
  return {
    /**
     * Requests logs for the blocks that too few operators agree on, oldest first, from the operators that haven't shown their logs yet. If
     * the operators' logs differ, all of the operators are asked again periodically. If operators disagree about a block that all of them
     * must have, an alarm is raised. If too few operators are available to reach agreement, no node is asked. `isNewestAsked` means that
     * the operators were asked for the newest block a moment ago.
     */
    gather: (nodes: readonly Node[], options: { isNewestAsked: boolean }) =>
      gather(nodes, { ...options, isBehind: false }),
    /**
     * Settles as many blocks as possible that are waiting for agreement. Call this while catching up: it asks for more blocks per step, and
     * starts the next step immediately as long as blocks are being settled.
     */
    gatherOpen: async () => {
      if (window.countOpen() > 0) {
        await gather(await deps.pool.available(), { isNewestAsked: false, isBehind: true });
      }
      openSinceMs = window.countOpen() < MANY_OPEN_BLOCKS ? null : (openSinceMs ?? performance.now());
    },
    /** Whether reading should pause because no block can be recorded without an operator that is currently down. */
    awaitsOperator: () => openSinceMs !== null && performance.now() - openSinceMs < AWAY_MS,
  };
}

/**
 * Returns a function that raises an alarm if the oldest block that waits for agreement stays the same for too long, which is also the case
 * while too few operators answer.
 */
function createWaitingNote(deps: FollowDeps): (oldest: WindowBlock | undefined) => Promise<void> {
  let waiting = { id: '', nextMs: 0 };
  return async (oldest) => {
    const [nowMs, patienceMs] = [performance.now(), WAITING_BLOCKS * deps.blockMs];
    if (oldest?.id !== waiting.id) waiting = { id: oldest?.id ?? '', nextMs: nowMs + patienceMs };
    if (oldest === undefined || nowMs < waiting.nextMs) return;
    waiting.nextMs = nowMs + patienceMs;
    await logOpen(deps, oldest);
  };
}

/** Reports the oldest block only, because the others have to wait for it anyway. */
async function logOpen({ agreement, alarms, pool }: FollowDeps, { number, id, votes }: WindowBlock): Promise<void> {
  const shown = [...votes.values()].map(
    ({ origin, logs }) => `${origin}: ${logs.transfers.length} transfers (${logs.digest.slice(0, 12)})`,
  );
  await alarms.raise(
    'nodes-disagree',
    '',
    `block ${number} (${id}) waits until ${agreement} operators return the same USDT logs; so far ${shown.join(', ') || 'none'}. ` +
      'No invoice paid in this or a later block becomes PAID. Repair the node that is wrong or does not respond, or add a node from another ' +
      `operator. Nodes: ${describeNodes(pool)}`,
  );
}

async function ask(
  deps: FollowDeps,
  block: WindowBlock,
  examined: ExaminedBlock,
  node: Node,
  { mayLag }: { mayLag: boolean },
): Promise<void> {
  const logs = await (mayLag ? readLogsIfThere(deps, node, examined) : readLogsOf(deps, node, examined)).catch(orNull);
  if (logs !== null) addVote(block, node, logs, deps.agreement);
}
