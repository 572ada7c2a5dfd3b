import { AppError } from '../domain/errors.ts';
import { unixMs } from '../domain/time.ts';
import type { AccountHex } from '../tron/address.ts';
import { contradict } from './contradict.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';
import type { Node } from './node-member.ts';
import { ofDifferentOperators } from './operators.ts';
import { isKnownSolid, isSignedBy, loadProducers, PERIOD_MS, refreshProducers } from './producers.ts';
import type { ProvenHeader } from './prove-block.ts';
import { checked, type ReadBlock, readBlock, readHeaderAt, readNewestSolid } from './read-block.ts';
import { othersFor, withVotes } from './votes.ts';
import type { WindowBlock } from './window.ts';

/** Nodes are not asked for the producers more often than this. */
const REFRESH_BLOCKS = 1;
/** Where they refused or disagreed, they are asked again after so long, until the alarm is over. */
const RETRY_BLOCKS = 20;
/** A node whose block cannot be judged yet is asked last for so long. */
const AVOID_BLOCKS = 2;

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
  const mayLag = !following.pace.isOverdue(deps.now());
  const next = await readBlock(deps, node, tipOf(following).number + 1, { mayLag });
  if (next === null) return [];
  const reads = [next];
  let kept = following.window.length;
  for (;;) {
    const lowest = reads[0]?.block;
    const ancestor = following.window[kept - 1] ?? following.base;
    if (lowest === undefined || lowest.parentId === ancestor.id) break;
    if (kept === 0) throw await contradict(deps, following, node, lowest);
    reads.unshift(await readParent(deps, following, node, lowest));
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

/** The block that a block builds on, and no other of its height: what is built on a block is what makes it irreversible. */
async function readParent(deps: FollowDeps, following: Following, node: Node, child: ProvenHeader): Promise<ReadBlock> {
  const read = await readBlock(deps, node, child.number - 1, { mayLag: false });
  if (read !== null && read.block.id === child.parentId) return read;
  // The back ends of one node disagree for a moment about the head: another node is asked first.
  avoid(deps, following, node);
  throw new AppError('NODE_REFUSED', `${node.origin} moved between two branches at block ${child.number - 1}`, {
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
  let isAskedNow = false;
  if (performance.now() >= following.producersNextMs) {
    isAskedNow = await keepProducers(deps, following, nodes, new Set([block.producer]));
    if (isKnown()) return true;
    following.agreedSolid = await readAgreedSolid(deps, following, nodes);
  }
  if (block.number <= following.agreedSolid) {
    const others = nodes.filter(({ operator }) => operator !== node.operator);
    if (!(await isAttestedElsewhere(deps, following, block, others))) return false;
    // The block is right, and the signature that this node shows for it is not.
    deps.pool.report(node, 'unverifiable', `the signature of block ${block.number} is not the one that others show`);
    return true;
  }
  const reason = `block ${block.number} (${block.id}) says that 41${block.producer} made it, and is signed by 41${block.signer}, which no known producer signs with`;
  if (!isAskedNow) {
    // Who is wrong cannot be said while the producers cannot be asked for: another node may show another block.
    avoid(deps, following, node);
    throw new AppError('NODES_DISAGREE', `${node.origin}: ${reason}`, { retryable: true });
  }
  return checked(deps, node, () => {
    throw new AppError('BLOCK_UNVERIFIABLE', reason, { retryable: true });
  });
}

export function avoid({ blockMs }: FollowDeps, following: Following, { operator }: Node): void {
  following.avoided = { operator, untilMs: performance.now() + AVOID_BLOCKS * blockMs };
}

/** Whether another operator shows the same block with the signature of a known producer. The id says nothing of signatures. */
async function isAttestedElsewhere(
  deps: FollowDeps,
  { producers }: Following,
  block: ProvenHeader,
  [other]: readonly Node[],
): Promise<boolean> {
  if (other === undefined || producers === null) return false;
  const shown = await readHeaderAt(deps, other, block.number).catch((error: unknown) => {
    if (error instanceof AppError) return null;
    throw error;
  });
  return shown !== null && shown.id === block.id && isSignedBy(producers, shown);
}

/** The height up to which `agreement` operators call the chain irreversible, by headers of known producers; 0 where too few do. */
async function readAgreedSolid(deps: FollowDeps, { producers }: Following, nodes: readonly Node[]): Promise<number> {
  const operators = ofDifferentOperators(nodes, nodes.length);
  const answers = await Promise.allSettled(operators.map((node) => readNewestSolid(deps, node)));
  const numbers = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && isKnownSolid(producers, answer.value) ? [answer.value.number] : [],
  );
  return numbers.sort((left, right) => right - left)[deps.agreement - 1] ?? 0;
}

/**
 * Asks for the producers, and goes on with those that are known where nodes refuse or disagree. Returns whether what is known
 * now is what enough nodes name. Throws while none are known.
 */
export async function keepProducers(
  deps: FollowDeps,
  following: Following,
  nodes: readonly Node[],
  suspects: ReadonlySet<AccountHex> = new Set(),
): Promise<boolean> {
  following.producersNextMs = performance.now() + REFRESH_BLOCKS * deps.blockMs;
  const [clock, tip] = [deps.now(), tipOf(following)];
  // An operator may have accepted other producers meanwhile.
  const before = await loadProducers(deps.db, deps.network);
  following.producers = before;
  try {
    const time = unixMs(Math.max(clock, tip.time));
    following.producers = await refreshProducers(deps, nodes, before, { time, clock, suspects });
    following.producersPeriod = Math.floor(tip.time / PERIOD_MS);
    const { reason, producers, nodes: told } = following.producers.newest;
    if (following.producers !== before) {
      deps.log.info({ reason, producers: producers.length, nodes: told }, 'took over the producers');
    }
    await deps.alarms.calm('producers-refused');
    return true;
  } catch (error) {
    if (!(error instanceof AppError) || before === null) throw error;
    following.producersPeriod = -1;
    following.producersRetryMs = performance.now() + RETRY_BLOCKS * deps.blockMs;
    if (error.code === 'NODES_DISAGREE') {
      await deps.alarms.raise('producers-refused', '', `the producers stay as they were: ${error.message}`);
    }
    return false;
  }
}
