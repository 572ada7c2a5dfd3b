import { AppError, retryableError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { backoffMs } from '../../runtime/loop.ts';
import { findGenesisId, setHalt } from '../../store/chain/cursor.ts';
import type { Avoidance, Node } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy } from '../verify/producers.ts';
import { blamed, type ReadBlock, readBlock, readGenesis, readHeadBlock, readHeaderAt } from '../verify/read-block.ts';
import type { FollowDeps } from './following.ts';
import type { Signers } from './signers.ts';
import { type ChainWindow, othersFor, type WindowBlock, withQuorum } from './window.ts';

/** Forks on the main network are only one or two blocks deep, and normally at most 18 blocks aren't irreversible yet. */
const MAX_WALK_BLOCKS = 100;
/**
 * Infos sometimes appear a moment after their block. After this many late blocks in a row, the node is considered slow, and another one is
 * asked first.
 */
const MAX_LATE_INFOS = 3;
/** Much more than real clock drift. */
const MAX_AHEAD_MS = 10 * 60_000;

type HeadParts = { window: ChainWindow; signers: Signers; avoidance: Avoidance; pace: Pace };
type Followed = { added: number; nextMs: number; isNewest?: true };

/** Reads the newest blocks, one at a time, and follows the chain onto another branch. */
export function createHead(deps: FollowDeps, { window, signers, avoidance, pace }: HeadParts) {
  /**
   * `isNow` means that a node shows the next block without its infos, and `blocks` counts the consecutive blocks where this has happened.
   */
  const lateInfos = { isNow: false, blocks: 0 };
  /** Operators whose irreversible chain differs from ours at the solid block `base`, with the reason for each. */
  const forks = { base: '', reasons: new Map<string, string>() };

  /** Returns `null` if the node doesn't have the next block, or doesn't have its infos yet. */
  const readNext = async (node: Node): Promise<ReadBlock | null> => {
    const read = pace.isOverdue(deps.now()) ? readBlock : readHeadBlock;
    const next = await read(deps, node, window.tip().number + 1).catch((error: unknown) => {
      // No other node confirms this block, so prefer the others for a while.
      if (error instanceof AppError && error.code === 'NODES_DISAGREE') avoidance.avoid(node);
      throw error;
    });
    if (next !== 'no-infos') return next;
    if (!lateInfos.isNow) lateInfos.blocks += 1;
    lateInfos.isNow = true;
    if (lateInfos.blocks > MAX_LATE_INFOS) avoidance.avoid(node);
    return null;
  };
  /**
   * Reads a block's parent. Any other block at that height is refused, because a block becomes irreversible only through the blocks that
   * are built on it.
   */
  const readParent = async (node: Node, child: ProvenHeader): Promise<ReadBlock> => {
    const read = await readBlock(deps, node, child.number - 1);
    if (read !== null && read.block.id === child.parentId) return read;
    // The node's back ends currently disagree about the head, so prefer another node.
    avoidance.avoid(node);
    throw retryableError('NODE_REFUSED', `${node.origin} switched between two branches at block ${child.number - 1}`);
  };
  /** Handles a branch that split off too long ago to walk back block by block. Drops the blocks in memory, so that they are read again. */
  const tooFar = (node: Node): AppError => {
    window.drop();
    avoidance.avoid(node);
    const message = `${node.origin} returned a branch that split off more than ${MAX_WALK_BLOCKS} blocks ago, so Quittance reads the blocks above ${window.base().number} again`;
    return retryableError('NODE_REFUSED', message);
  };
  /**
   * Reads the block after the newest verified one. If that block doesn't build on the newest verified one, also reads the blocks that
   * replace ours, back to the common ancestor and at most back to the solid block. Returns how many blocks are new, which is 0 if the node
   * has no next block.
   */
  const extend = async (node: Node, nodes: readonly Node[]): Promise<number> => {
    const next = await readNext(node);
    if (next === null) return 0;
    const keys = [await signers.identify(next, nodes)];
    const reads = [next];
    let kept = window.blocks.length;
    for (;;) {
      const lowest = reads[0]?.block;
      const ancestor = window.blocks[kept - 1] ?? window.base();
      if (lowest === undefined || lowest.parentId === ancestor.id) break;
      if (kept === 0) throw await diagnoseFork(reads[0]?.node ?? node, lowest);
      if (reads.length > MAX_WALK_BLOCKS) throw tooFar(node);
      const parent = await readParent(node, lowest);
      keys.unshift(await signers.identify(parent, nodes));
      reads.unshift(parent);
      kept -= 1;
    }
    assertLater(deps, window.blocks[kept - 1] ?? window.base(), reads);
    const blocks: WindowBlock[] = [];
    for (const [index, read] of reads.entries()) {
      blocks.push(await withQuorum(deps, read, keys[index] ?? null, othersFor(deps, nodes, read.node)));
    }
    if (kept < window.blocks.length) {
      const count = window.blocks.length - kept;
      deps.log.info({ node: node.origin, blocks: count }, 'the head of the chain was replaced');
    }
    window.replaceFrom(kept, ...blocks);
    if (keys.at(-1) !== null) deps.pool.praise(next.node);
    return blocks.length;
  };
  /**
   * Call this when a node shows a verified block that doesn't build on our irreversible one. Finds the reason and returns the error to
   * throw: the node is on another network, its answers are inconsistent, or its irreversible chain differs from the ledger. If `agreement`
   * operators show a different irreversible chain, the watcher halts until an operator decides, because it must never repair a ledger
   * silently.
   */
  const diagnoseFork = async (node: Node, block: ProvenHeader): Promise<AppError> => {
    const base = window.base();
    const genesisId = await findGenesisId(deps.db, deps.network);
    const { id: shownGenesis } = await readGenesis(deps, node);
    if (genesisId !== null && shownGenesis !== genesisId) {
      const reason = `${node.origin} belongs to another network: its block 0 is ${shownGenesis}, but this network's block 0 is ${genesisId}`;
      deps.pool.report(node, 'wrong-network', reason);
      return retryableError('NODE_WRONG_NETWORK', reason);
    }
    const shown = await readHeaderAt(deps, node, base.number);
    if (shown.id === base.id) {
      const reason = `${node.origin} returned block ${block.number} (${block.id}), which does not build on its own irreversible block ${base.id}`;
      deps.pool.report(node, 'incomplete', reason);
      return retryableError('NODE_REFUSED', reason);
    }
    const reason = `the irreversible block ${base.number} is ${base.id} in the ledger, but ${shown.id} on ${node.origin}`;
    // Anyone can make up a header, so a header proves nothing unless a known key signed it.
    const producers = signers.known();
    if (producers === null || !isSignedBy(producers, shown)) {
      return blamed(deps, node, retryableError('BLOCK_UNVERIFIABLE', `${reason}, not signed by any known producer`));
    }
    deps.pool.report(node, 'contradicts', reason);
    // Once a later block is recorded, the nodes are on the ledger's chain again.
    if (forks.base !== base.id) forks.reasons.clear();
    forks.base = base.id;
    forks.reasons.set(node.operator, reason);
    if (forks.reasons.size >= deps.agreement) {
      const all = [...forks.reasons.values()].join('; ');
      const detail = `the watcher stopped: ${all}. Find out whether the ledger or the nodes are right. When the nodes return the ledger's block again, run: quittance chain resume --network ${deps.network}`;
      await deps.db.transaction(async (tx) => {
        await setHalt(tx, deps.network, all);
        await deps.alarms.raise('halted', String(base.number), detail, tx);
      });
      forks.reasons.clear();
    }
    return retryableError('CHAIN_CONTRADICTION', reason);
  };
  return {
    extend,
    /**
     * Reads the next block when it's due. If the preferred node lacks it for too long, asks another node. `nextMs` is the pause before the
     * following block, and `isNewest` means that no later block exists.
     */
    follow: async (node: Node, nodes: readonly Node[]): Promise<Followed> => {
      if (window.isFull()) return { added: 0, nextMs: deps.blockMs };
      await signers.requestIfDue(nodes);
      let added = await extend(node, nodes);
      let isLate = false;
      if (added === 0 && pace.isOverdue(deps.now())) {
        const others = nodes.filter(({ origin }) => origin !== node.origin);
        const other = others.find(({ operator }) => operator !== node.operator) ?? others[0];
        if (other !== undefined) added = await extend(other, nodes);
        isLate = added > 0;
        if (isLate) deps.pool.report(node, 'lagging', `it has no block ${window.tip().number}, but other nodes do`);
      }
      if (added === 0) return { added, nextMs: pace.onMiss(deps.now()), isNewest: true };
      if (!lateInfos.isNow) lateInfos.blocks = 0;
      // If the infos appeared later than the block, this time says nothing about how soon blocks become readable.
      isLate ||= lateInfos.isNow;
      lateInfos.isNow = false;
      return { added, nextMs: pace.onBlock(window.tip().time, deps.now(), isLate) };
    },
  };
}

/**
 * Throws unless each block is later than its parent. On a real network a block must not be in the future either, because block times make
 * invoices expire.
 */
export function assertLater(
  deps: FollowDeps,
  ancestor: { time: UnixMs },
  reads: readonly { node: Node; block: { number: number; time: UnixMs } }[],
): void {
  let before = ancestor.time;
  for (const { node, block } of reads) {
    const { number, time } = block;
    if (time <= before || isOfTheFuture(deps, time)) {
      const seen = `block ${number} is dated ${time}, its parent ${before}, and this server's clock says ${deps.now()}`;
      throw blamed(deps, node, retryableError('BLOCK_UNVERIFIABLE', seen));
    }
    before = time;
  }
}

/** A private network's clock may be ahead of this server's clock. */
function isOfTheFuture({ slotMs, now }: FollowDeps, time: UnixMs): boolean {
  return slotMs !== null && time > now() + MAX_AHEAD_MS;
}

export type Pace = ReturnType<typeof createBatchPace>;

/** The first pause after a miss is the block time divided by this number. Each further miss doubles the pause, up to a whole block time. */
const RETRY_SHARE = 16;
/**
 * If a block was available immediately, the next request is sent earlier by the block time divided by this number. After several such
 * blocks in a row, this step doubles each time.
 */
const EARLIER_SHARE = 600;
const STEADY_BLOCKS = 8;
/** If a block is found longer than this fraction of a block time after the last miss, it may have been available for a while. */
const KNOWN_SHARE = 0.3;
/**
 * If blocks seem to be more than a block time late, other nodes may already have the next one. After one in this many blocks, the next one
 * is therefore requested immediately.
 */
const PROBE_BLOCKS = 8;
/**
 * A block that has been missing for this fraction of a block time is requested from another node, which can still answer before the
 * following block is due.
 */
const OVERDUE_SHARE = 0.6;
/** While no one is waiting, the irreversible block is requested once per eight blocks. Up to three saved requests may be spent at once. */
const IDLE_BLOCKS = 8;
const MOST_SAVED = 3;
/** A private network may be faster than configured, so Quittance uses the median of this many block intervals. */
const KNOWN_STEPS = 9;
/** Sandbox networks don't produce blocks faster than this. Blocks that a test creates in a burst don't predict when the next one comes. */
const MIN_STEP_MS = 100;

/**
 * Decides when to request the next block and the newest irreversible block. Nodes limit requests, so an early request is wasted, and a late
 * one keeps a payer waiting. All times are in milliseconds; `nowMs` is wall-clock time.
 *
 * Learns how long after its timestamp a block becomes readable on the node, regardless of the offset between the two clocks. It estimates
 * this delay from blocks that were found shortly after a miss. `longestMs` is the block time; the chain may be faster. `earnedPerBlock`
 * returns how many requests for the irreversible block may be spent per block while payers are waiting.
 */
export function createBatchPace(longestMs: number, earnedPerBlock: () => number) {
  const learnStep = createSteps(longestMs);
  let blockMs = longestMs;
  let delayMs = 0;
  let earlierMs = blockMs / EARLIER_SHARE;
  let hits = 0;
  let misses = 0;
  let firstMissMs = 0;
  let lastMissMs = 0;
  let probe: 'none' | 'first' | 'further' = 'none';
  let unprobed = PROBE_BLOCKS;
  let dueMs = 0;
  let saved = MOST_SAVED;
  let lastSpentMs = Number.NEGATIVE_INFINITY;
  return {
    /**
     * Call this when the next block was available. Returns the pause until the following block is due. `isLate` means that another node was
     * asked first and didn't have it.
     */
    onBlock: (blockTime: UnixMs, nowMs: number, isLate: boolean): number => {
      blockMs = learnStep(blockTime);
      // The delay can't have been longer than the time since the block's timestamp. Without this limit, requests would stay late
      // permanently after the clock was set back.
      delayMs = Math.min(delayMs, nowMs - blockTime);
      if (isLate || (misses > 0 && nowMs - lastMissMs > blockMs * KNOWN_SHARE)) {
        // The block had already existed for a while, and only this node or the previously asked node lacked it. So there's nothing to
        // learn.
        earlierMs = blockMs / EARLIER_SHARE;
      } else if (misses > 0) {
        delayMs = nowMs - blockTime;
        hits = 0;
        earlierMs = blockMs / EARLIER_SHARE;
      } else {
        hits += 1;
        delayMs -= earlierMs;
        if (hits > STEADY_BLOCKS) earlierMs = Math.min(blockMs / 2, earlierMs * 2);
      }
      misses = 0;
      saved = Math.min(MOST_SAVED, saved + earnedPerBlock());
      dueMs = blockTime + blockMs + delayMs;
      unprobed += 1;
      // If an early attempt finds a block, the next block is tried early as well.
      if (delayMs > blockMs && (probe !== 'none' || unprobed > PROBE_BLOCKS)) {
        probe = probe === 'none' ? 'first' : 'further';
        unprobed = 0;
        return 0;
      }
      probe = 'none';
      return Math.max(0, Math.min(blockMs, dueMs - nowMs));
    },
    /** Call this when the next block wasn't available. Returns the pause until the next attempt. */
    onMiss: (nowMs: number): number => {
      const isVain = probe === 'first';
      probe = 'none';
      // This was only an early attempt, long before the block was due.
      if (isVain && dueMs > nowMs) return Math.min(blockMs, dueMs - nowMs);
      if (misses === 0 || nowMs < firstMissMs) firstMissMs = nowMs;
      misses += 1;
      lastMissMs = nowMs;
      const pauseMs = backoffMs(misses, { firstMs: blockMs / RETRY_SHARE, longestMs });
      const overdueInMs = firstMissMs + blockMs * OVERDUE_SHARE - nowMs;
      return overdueInMs > 0 ? Math.min(pauseMs, Math.ceil(overdueInMs)) : pauseMs;
    },
    /** Whether the next block has been missing for so long that another node should be asked before the block time is over. */
    isOverdue: (nowMs: number) => misses > 0 && nowMs - firstMissMs >= blockMs * OVERDUE_SHARE,
    /** Whether to spend a request on the newest irreversible block now. */
    maySpend: (isPayerWaiting: boolean, nowMs: number): boolean => {
      if (nowMs < lastSpentMs) lastSpentMs = Number.NEGATIVE_INFINITY;
      const isIdleTurn = nowMs - lastSpentMs >= IDLE_BLOCKS * blockMs;
      if (!isIdleTurn && !(isPayerWaiting && saved >= 1)) return false;
      saved = Math.max(-MOST_SAVED, saved - 1);
      lastSpentMs = nowMs;
      return true;
    },
  };
}

/** Returns a function that accepts the time of each block and returns the block interval, at most `longestMs`. */
function createSteps(longestMs: number): (blockTime: UnixMs) => number {
  const steps: number[] = [];
  let lastTime = Number.NaN;
  let stepMs = longestMs;
  return (blockTime) => {
    if (blockTime > lastTime) steps.push(blockTime - lastTime);
    lastTime = blockTime;
    if (steps.length < KNOWN_STEPS) return stepMs;
    const middle = steps.toSorted((left, right) => left - right)[(KNOWN_STEPS - 1) / 2] ?? longestMs;
    stepMs = Math.min(longestMs, Math.max(MIN_STEP_MS, middle));
    steps.shift();
    return stepMs;
  };
}
