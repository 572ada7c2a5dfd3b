import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findGenesisId, setHalt } from '../../store/chain/cursor.ts';
import type { Node } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy } from '../verify/producers.ts';
import { checked, type ReadBlock, readGenesis, readHeaderAt } from '../verify/read-block.ts';
import { readBlock, readHeadBlock } from '../verify/read-with-logs.ts';
import { type FollowDeps, type Following, replaceFrom, tipOf } from './following.ts';
import { avoid, identifySigner } from './identify-signer.ts';
import { othersFor, withQuorum } from './quorum.ts';
import type { WindowBlock } from './window.ts';

/** Forks of the main network are only one or two blocks deep, and normally at most 18 blocks aren't irreversible yet. */
const MAX_WALK_BLOCKS = 100;
/**
 * Infos sometimes appear a moment after their block. After this many late blocks in a row, the node is considered slow, and another one is
 * asked first.
 */
const MAX_LATE_INFOS = 3;
/** Much more than real clock drift. */
const MAX_AHEAD_MS = 10 * 60_000;

/**
 * Reads the block after the newest verified one. If it doesn't build on that one, also reads the blocks that replace ours, back to the
 * common ancestor and at most back to the solid block. Returns the new blocks, or none if the node has no next block.
 */
export async function extend(
  deps: FollowDeps,
  following: Following,
  node: Node,
  nodes: readonly Node[],
): Promise<WindowBlock[]> {
  const isOverdue = following.pace.isOverdue(deps.now());
  const next = await (isOverdue ? readBlock : readHeadBlock)(deps, node, tipOf(following).number + 1).catch(
    (error: unknown) => {
      // No other node confirms this block, so prefer the others for a while.
      if (error instanceof AppError && error.code === 'NODES_DISAGREE') avoid(deps, following, node);
      throw error;
    },
  );
  if (next === 'no-infos') {
    const { lateInfos } = following;
    if (!lateInfos.isNow) lateInfos.blocks += 1;
    lateInfos.isNow = true;
    if (lateInfos.blocks > MAX_LATE_INFOS) avoid(deps, following, node);
  }
  if (next === null || next === 'no-infos') return [];
  const signers = [await identifySigner(deps, following, next, nodes)];
  const reads = [next];
  let kept = following.window.length;
  for (;;) {
    const lowest = reads[0]?.block;
    const ancestor = following.window[kept - 1] ?? following.base;
    if (lowest === undefined || lowest.parentId === ancestor.id) break;
    if (kept === 0) throw await diagnoseFork(deps, following, reads[0]?.node ?? node, lowest);
    if (reads.length > MAX_WALK_BLOCKS) throw tooFar(deps, following, node);
    const parent = await readParent(deps, following, node, lowest);
    signers.unshift(await identifySigner(deps, following, parent, nodes));
    reads.unshift(parent);
    kept -= 1;
  }
  assertLater(deps, following.window[kept - 1] ?? following.base, reads);
  const blocks: WindowBlock[] = [];
  for (const [index, read] of reads.entries()) {
    blocks.push(await withQuorum(deps, read, signers[index] ?? null, othersFor(deps, nodes, read.node)));
  }
  if (kept < following.window.length) {
    const count = following.window.length - kept;
    deps.log.info({ node: node.origin, blocks: count }, 'the head of the chain was replaced');
  }
  replaceFrom(following, kept, ...blocks);
  if (signers.at(-1) !== null) deps.pool.praise(next.node);
  return blocks;
}

/** The branch split off too long ago to walk back block by block. Drops the blocks in memory, so that they are read again. */
function tooFar(deps: FollowDeps, following: Following, node: Node): AppError {
  replaceFrom(following, 0);
  avoid(deps, following, node);
  const message = `${node.origin} returned a branch that split off more than ${MAX_WALK_BLOCKS} blocks ago, so Quittance reads the blocks above ${following.base.number} again`;
  return new AppError('NODE_REFUSED', message, { retryable: true });
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
    checked(deps, node, () => {
      if (time > before && !isOfTheFuture(deps, time)) return;
      const seen = `block ${number} is dated ${time}, its parent ${before}, and this server's clock says ${deps.now()}`;
      throw new AppError('BLOCK_UNVERIFIABLE', seen, { retryable: true });
    });
    before = time;
  }
}

/** The clock of a private network may be ahead of this server's clock. */
function isOfTheFuture({ slotMs, now }: FollowDeps, time: UnixMs): boolean {
  return slotMs !== null && time > now() + MAX_AHEAD_MS;
}

/**
 * Reads the parent of a block. Any other block at that height is refused, because a block becomes irreversible only through the blocks
 * built on it.
 */
async function readParent(deps: FollowDeps, following: Following, node: Node, child: ProvenHeader): Promise<ReadBlock> {
  const read = await readBlock(deps, node, child.number - 1);
  if (read !== null && read.block.id === child.parentId) return read;
  // The node's back ends currently disagree about the head, so prefer another node.
  avoid(deps, following, node);
  throw new AppError('NODE_REFUSED', `${node.origin} moved between two branches at block ${child.number - 1}`, {
    retryable: true,
  });
}

/**
 * Call this when a node shows a verified block that doesn't build on our irreversible one. Finds the reason and returns the error to throw:
 * the node is on another network, its answers are inconsistent, or its irreversible chain differs from the ledger. If `agreement` operators
 * show a different irreversible chain, the watcher halts until an operator decides, because it must never repair a ledger silently.
 */
async function diagnoseFork(
  deps: FollowDeps,
  following: Following,
  node: Node,
  block: ProvenHeader,
): Promise<AppError> {
  const { base } = following;
  const genesisId = await findGenesisId(deps.db, deps.network);
  const { id: shownGenesis } = await readGenesis(deps, node);
  if (genesisId !== null && shownGenesis !== genesisId) {
    const reason = `${node.origin} belongs to another network: its block 0 is ${shownGenesis}, but this network's block 0 is ${genesisId}`;
    deps.pool.report(node, 'wrong-network', reason);
    return new AppError('NODE_WRONG_NETWORK', reason, { retryable: true });
  }
  const shown = await readHeaderAt(deps, node, base.number);
  if (shown.id === base.id) {
    const reason = `${node.origin} returned block ${block.number} (${block.id}), which does not build on its own irreversible block ${base.id}`;
    deps.pool.report(node, 'incomplete', reason);
    return new AppError('NODE_REFUSED', reason, { retryable: true });
  }
  const reason = `the irreversible block ${base.number} is ${base.id} in the ledger, but ${shown.id} on ${node.origin}`;
  // Anyone can write a header, so a header that no known key signed proves nothing.
  if (following.producers === null || !isSignedBy(following.producers, shown)) {
    return checked(deps, node, () => {
      throw new AppError('BLOCK_UNVERIFIABLE', `${reason}, signed by no known producer`, { retryable: true });
    });
  }
  deps.pool.report(node, 'contradicts', reason);
  following.diagnosingFork.set(node.operator, reason);
  if (following.diagnosingFork.size >= deps.agreement) {
    const all = [...following.diagnosingFork.values()].join('; ');
    const detail = `the watcher stopped: ${all}. Find out which one is right. When the nodes return the ledger's block again, run: quittance chain resume --network ${deps.network}`;
    await deps.db.transaction(async (tx) => {
      await setHalt(tx, deps.network, all);
      await deps.alarms.raise('halted', String(base.number), detail, tx);
    });
    following.diagnosingFork.clear();
  }
  return new AppError('CHAIN_CONTRADICTION', reason, { retryable: true });
}
