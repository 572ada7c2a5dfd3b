import { AppError } from '../domain/errors.ts';
import type { AccountHex } from '../tron/address.ts';
import { contradict } from './contradict.ts';
import { type FollowDeps, type Following, ofDifferentOperators, tipOf } from './following.ts';
import type { Node } from './node-member.ts';
import { isSignedBy, loadProducers, PERIOD_MS, refreshProducers } from './producers.ts';
import { checked, type ReadBlock, readBlock, readNewestSolid } from './read-block.ts';
import { othersFor, withVotes } from './votes.ts';
import type { WindowBlock } from './window.ts';

/** Nodes are not asked for the producers more often than this. */
const REFRESH_BLOCKS = 4;

/**
 * Reads the block after the newest verified one. Where it does not build on that one, the replaced blocks are read again down
 * to the common ancestor, at most to the solid block. Returns the blocks that are new; none if the node has no next block.
 */
export async function extend(
  deps: FollowDeps,
  following: Following,
  node: Node,
  nodes: readonly Node[],
): Promise<WindowBlock[]> {
  const next = await readBlock(deps, node, tipOf(following).number + 1);
  if (next === null) return [];
  const reads = [next];
  let kept = following.window.length;
  for (;;) {
    const lowest = reads[0]?.block;
    const ancestor = following.window[kept - 1] ?? following.base;
    if (lowest === undefined || lowest.parentId === ancestor.id) break;
    if (kept === 0) throw await contradict(deps, following, node, lowest);
    reads.unshift(await readAgain(deps, node, ancestor));
    kept -= 1;
  }
  const others = othersFor(deps, nodes, node);
  const blocks: WindowBlock[] = [];
  for (const read of reads)
    blocks.push(await withVotes(deps, read, await attest(deps, following, read, nodes), others));
  if (kept < following.window.length) {
    const count = following.window.length - kept;
    deps.log.info({ node: node.origin, blocks: count }, 'the head of the chain was replaced');
  }
  following.window.splice(kept, Number.POSITIVE_INFINITY, ...blocks);
  deps.pool.praise(node);
  return blocks;
}

async function readAgain(deps: FollowDeps, node: Node, replaced: { number: number; id: string }): Promise<ReadBlock> {
  const read = await readBlock(deps, node, replaced.number);
  if (read !== null && read.block.id !== replaced.id) return read;
  // The back ends of one node disagree for a moment about the head.
  throw new AppError('NODE_REFUSED', `${node.origin} moved between two branches at block ${replaced.number}`, {
    retryable: true,
  });
}

/**
 * Whether a known producer signed the block. At the head a block that none signed is refused, after the producers were asked
 * for anew; in the irreversible past, whose producers may have left, it waits for what is built on it.
 */
export async function attest(
  deps: FollowDeps,
  following: Following,
  { node, block }: Pick<ReadBlock, 'node' | 'block'>,
  nodes: readonly Node[],
): Promise<boolean> {
  const isKnown = () => following.producers !== null && isSignedBy(following.producers, block);
  if (isKnown()) return true;
  if (performance.now() >= following.producersNextMs) {
    const chainTime = block.time > following.nodeSolid.time ? block.time : following.nodeSolid.time;
    await keepProducers(deps, following, nodes, chainTime, new Set([block.producer]));
    if (isKnown()) return true;
    following.agreedSolid = await readAgreedSolid(deps, nodes);
  }
  if (block.number <= following.agreedSolid) return false;
  return checked(deps, node, () => {
    throw new AppError(
      'BLOCK_UNVERIFIABLE',
      `block ${block.number} (${block.id}) says that 41${block.producer} made it, and is signed by 41${block.signer}, which no known producer signs with`,
      { retryable: true },
    );
  });
}

/** The height up to which nodes of `agreement` operators call the chain irreversible; 0 where too few can be asked. */
async function readAgreedSolid(deps: FollowDeps, nodes: readonly Node[]): Promise<number> {
  const asked = ofDifferentOperators(nodes, deps.agreement);
  if (asked.length < deps.agreement) return 0;
  const shown = await Promise.all(asked.map((node) => readNewestSolid(deps, node)));
  return Math.min(...shown.map(({ number }) => number));
}

/** Asks for the producers, and goes on with those that are known where nodes refuse or disagree. Throws while none are known. */
export async function keepProducers(
  deps: FollowDeps,
  following: Following,
  nodes: readonly Node[],
  chainTime: Following['base']['time'],
  suspects: ReadonlySet<AccountHex> = new Set(),
): Promise<void> {
  following.producersNextMs = performance.now() + REFRESH_BLOCKS * deps.blockMs;
  try {
    const asked = ofDifferentOperators(nodes, deps.agreement);
    // An operator may have accepted other producers meanwhile.
    const before = await loadProducers(deps.db, deps.network);
    following.producers = before;
    following.producers = await refreshProducers(deps, asked, before, { chainTime, clock: deps.now(), suspects });
    following.producersPeriod = Math.floor(chainTime / PERIOD_MS);
    if (following.producers !== before && following.producers !== null) {
      const { reason, producers, nodes: told } = following.producers.newest;
      deps.log.info({ reason, producers: producers.length, nodes: told }, 'took over the producers');
    }
    await deps.alarms.calm('producers-refused');
  } catch (error) {
    if (!(error instanceof AppError) || following.producers === null) throw error;
    if (error.code !== 'NODES_DISAGREE') return;
    const detail = `the producers stay as they were: ${error.message}`;
    await deps.alarms.raise('producers-refused', '', detail);
  }
}
