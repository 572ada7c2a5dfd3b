import { AppError } from '../domain/errors.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AccountHex } from '../tron/address.ts';
import { contradict } from './contradict.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';
import type { Node } from './node-member.ts';
import { ofDifferentOperators } from './operators.ts';
import { isKnownSolid, isSignedBy, loadProducers, PERIOD_MS, refreshProducers } from './producers.ts';
import type { ProvenHeader } from './prove-block.ts';
import { checked, type ReadBlock, readBlock, readHeadBlock, readHeaderAt, readNewestSolid } from './read-block.ts';
import { othersFor, withVotes } from './votes.ts';
import type { WindowBlock } from './window.ts';

/** Nodes are not asked for the producers more often than this. */
const REFRESH_BLOCKS = 1;
/** Where they refused or disagreed, they are asked again after so long, until the alarm is over. */
const RETRY_BLOCKS = 20;
/** A node whose block cannot be judged yet is asked last for so long. */
const AVOID_BLOCKS = 2;
/** Forks of the main network are one or two blocks deep; at most 18 are not irreversible in good times. */
const MAX_WALK_BLOCKS = 100;
/** Infos may be a moment later than their block now and then; where they always are, another node is asked first. */
const MAX_LATE_INFOS = 3;
/** Far worse than clocks are. */
const MAX_AHEAD_MS = 10 * 60_000;

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
  const isOverdue = following.pace.isOverdue(deps.now());
  const next = await (isOverdue ? readBlock : readHeadBlock)(deps, node, tipOf(following).number + 1);
  if (next === 'no-infos') {
    const { lateInfos } = following;
    if (!lateInfos.isNow) lateInfos.blocks += 1;
    lateInfos.isNow = true;
    if (lateInfos.blocks > MAX_LATE_INFOS) avoid(deps, following, node);
  }
  if (next === null || next === 'no-infos') return [];
  const signers = [await attest(deps, following, next, nodes)];
  const reads = [next];
  let kept = following.window.length;
  for (;;) {
    const lowest = reads[0]?.block;
    const ancestor = following.window[kept - 1] ?? following.base;
    if (lowest === undefined || lowest.parentId === ancestor.id) break;
    if (kept === 0) throw await contradict(deps, following, node, lowest);
    if (reads.length > MAX_WALK_BLOCKS) throw tooFar(deps, following, node);
    const parent = await readParent(deps, following, node, lowest);
    signers.unshift(await attest(deps, following, parent, nodes));
    reads.unshift(parent);
    kept -= 1;
  }
  assertLater(deps, node, following.window[kept - 1] ?? following.base, reads);
  const others = othersFor(deps, nodes, node);
  const blocks: WindowBlock[] = [];
  for (const [index, read] of reads.entries()) {
    blocks.push(await withVotes(deps, read, signers[index] ?? null, others));
  }
  if (kept < following.window.length) {
    const count = following.window.length - kept;
    deps.log.info({ node: node.origin, blocks: count }, 'the head of the chain was replaced');
  }
  following.window.splice(kept, Number.POSITIVE_INFINITY, ...blocks);
  if (signers.at(-1) !== null) deps.pool.praise(node);
  return blocks;
}

/** A branch that parted longer ago is not walked back block by block: what is in memory is forgotten and read anew. */
function tooFar(deps: FollowDeps, following: Following, node: Node): AppError {
  following.window.splice(0);
  avoid(deps, following, node);
  const message = `${node.origin} shows a branch that parted more than ${MAX_WALK_BLOCKS} blocks ago; the blocks above ${following.base.number} are read again`;
  return new AppError('NODE_REFUSED', message, { retryable: true });
}

/** Each block is later than its parent, and on a real network not of the future: its time lets invoices expire. */
function assertLater(deps: FollowDeps, node: Node, ancestor: { time: UnixMs }, reads: readonly ReadBlock[]): void {
  let before = ancestor.time;
  for (const { block } of reads) {
    const { number, time } = block;
    checked(deps, node, () => {
      if (time > before && !isOfTheFuture(deps, time)) return;
      const seen = `block ${number} is of ${time}, its parent of ${before}, and our clock says ${deps.now()}`;
      throw new AppError('BLOCK_UNVERIFIABLE', seen, { retryable: true });
    });
    before = time;
  }
}

/** The clock of a private network may run ahead of ours. */
function isOfTheFuture({ slotMs, now }: FollowDeps, time: UnixMs): boolean {
  return slotMs !== null && time > now() + MAX_AHEAD_MS;
}

/** The block that a block builds on, and no other of its height: what is built on a block is what makes it irreversible. */
async function readParent(deps: FollowDeps, following: Following, node: Node, child: ProvenHeader): Promise<ReadBlock> {
  const read = await readBlock(deps, node, child.number - 1);
  if (read !== null && read.block.id === child.parentId) return read;
  // The back ends of one node disagree for a moment about the head: another node is asked first.
  avoid(deps, following, node);
  throw new AppError('NODE_REFUSED', `${node.origin} moved between two branches at block ${child.number - 1}`, {
    retryable: true,
  });
}

/**
 * The key of a known producer that signed the block, or `null`. At the head a block that none signed is refused, after the producers were asked
 * for anew; in the irreversible past, whose producers may have left, it waits for what is built on it.
 */
export async function attest(
  deps: FollowDeps,
  following: Following,
  { node, block }: Pick<ReadBlock, 'node' | 'block'>,
  nodes: readonly Node[],
): Promise<AccountHex | null> {
  const isKnown = () => following.producers !== null && isSignedBy(following.producers, block);
  if (isKnown()) return block.signer;
  let isAskedNow = false;
  if (performance.now() >= following.producersNextMs) {
    isAskedNow = await keepProducers(deps, following, nodes, new Set([block.producer]));
    if (isKnown()) return block.signer;
    following.agreedSolid = await readAgreedSolid(deps, following, nodes);
  }
  if (block.number <= following.agreedSolid) {
    const others = nodes.filter(({ operator }) => operator !== node.operator);
    const signer = await findSignerElsewhere(deps, following, block, others);
    if (signer === null) return null;
    // The block is right, and the signature that this node shows for it is not.
    deps.pool.report(node, 'unverifiable', `the signature of block ${block.number} is not the one that others show`);
    return signer;
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

/** The known key that signed the same block as another operator shows it: the id says nothing of signatures. `null`: none. */
async function findSignerElsewhere(
  deps: FollowDeps,
  { producers }: Following,
  block: ProvenHeader,
  [other]: readonly Node[],
): Promise<AccountHex | null> {
  if (other === undefined || producers === null) return null;
  const shown = await readHeaderAt(deps, other, block.number).catch((error: unknown) => {
    if (error instanceof AppError) return null;
    throw error;
  });
  return shown !== null && shown.id === block.id && isSignedBy(producers, shown) ? shown.signer : null;
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
    following.producers = await refreshProducers(deps, nodes, before, { clock, suspects });
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
