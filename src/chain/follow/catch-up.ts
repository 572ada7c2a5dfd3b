import { AppError } from '../../domain/errors.ts';
import type { Watching } from '../../payments/watching.ts';
import type { Node } from '../nodes/node.ts';
import { isSignedBy } from '../verify/producers.ts';
import { LONG_RANGE_BLOCKS } from '../verify/read-block.ts';
import { assertLater, extend } from './extend.ts';
import { BATCH_BLOCKS, finalize, ownSolidOf } from './finalize.ts';
import { type FollowDeps, type Following, replaceFrom, tipOf } from './following.ts';
import { avoid, identifySigner } from './identify-signer.ts';
import { awaitsOperator, gatherOpen } from './quorum.ts';
import { type AheadRange, createReadAhead, type ReadAhead } from './read-ahead.ts';
import { isNext, type WindowBlock } from './window.ts';

/** Blocks that wait for agreement, at most: half an hour of them, up to a hundred megabytes. */
const MAX_OPEN_BLOCKS = 600;
/** Verified blocks above the solid one, at most: four hours in which too few producers work, up to 160 megabytes. */
const MAX_WINDOW_BLOCKS = 4800;
/** Blocks after which a claim of a node, or a window, must have been borne out: 19 different producers take one minute. */
const STUCK_BLOCKS = 200;

/** Whether no further block should be read before some were recorded. */
export function isWindowFull({ window }: Following): boolean {
  const open = window.filter(({ agreed }) => agreed === null).length;
  return open + LONG_RANGE_BLOCKS > MAX_OPEN_BLOCKS || window.length + LONG_RANGE_BLOCKS > MAX_WINDOW_BLOCKS;
}

/**
 * Replays the irreversible blocks after the newest verified one, in order, with ranges read ahead; none of them is skipped
 * however long the gap. Ranges that have arrived are recorded together, because a transaction takes as long for one as for all; `onProgress`
 * is called after each. Ends at what the node said is irreversible, at a full window,
 * when `isStopping`, or with the error of a block that cannot be read or verified; the next call goes on from there.
 */
export async function catchUp(
  deps: FollowDeps,
  watching: Watching,
  following: Following,
  options: { node: Node; nodes: readonly Node[]; isStopping(): boolean; onProgress(): Promise<void> },
): Promise<void> {
  const { node, nodes, isStopping, onProgress } = options;
  const last = following.nodeSolid.number;
  const ahead = createReadAhead(deps, following, { node, nodes, first: tipOf(following).number + 1, last });
  const pending: AheadRange[] = [];
  const record = async () => {
    const sources = new Set(pending.splice(0).map(({ source }) => source));
    await gatherOpen(deps, following);
    if ((await finalize(deps, watching, following)) > 0) for (const source of sources) deps.pool.praise(source);
    await onProgress();
  };
  try {
    while (!isStopping() && !isWindowFull(following) && !awaitsOperator(following)) {
      const range = await nextLinked(following, ahead, node);
      if (range === null) break;
      if (range.blocks[0]?.block.parentId !== tipOf(following).id) {
        // The blocks verified before are a branch that lost: walk back to where the chain split, one block at a time.
        await record();
        await extend(deps, following, node, nodes);
        return;
      }
      await take(deps, following, range, nodes).catch((error: unknown) => {
        if (range.source !== node) ahead.dismiss(range.source);
        throw error;
      });
      pending.push(range);
      const count = pending.reduce((sum, { blocks }) => sum + blocks.length, 0);
      if (count >= BATCH_BLOCKS / 2 || !ahead.isNextThere()) await record();
    }
    await record();
  } catch (error) {
    // The blocks before one that cannot be read or judged need not wait for it.
    if (pending.length > 0) await record();
    throw error;
  } finally {
    ahead.stop();
  }
}

/**
 * The next range. One of another node counts only if it goes on from ours by blocks of known producers: a liar among several could
 * otherwise have us walk back again and again.
 */
async function nextLinked(following: Following, ahead: ReadAhead, node: Node): Promise<AheadRange | null> {
  const range = await ahead.next();
  if (range === null || range.source === node) return range;
  const { blocks, source } = range;
  const isLinked = blocks.every(({ block }, index) => isNext(blocks[index - 1]?.block ?? tipOf(following), block));
  if (!isLinked) ahead.dismiss(source);
  const { producers } = following;
  const isSigned = blocks.every(({ read }) => producers !== null && isSignedBy(producers, read.block));
  return isLinked && isSigned ? range : ahead.again(range);
}

/** Adds the blocks of a range to the window once they are known to be right. */
async function take(
  deps: FollowDeps,
  following: Following,
  { source, blocks }: AheadRange,
  nodes: readonly Node[],
): Promise<void> {
  assertLater(
    deps,
    tipOf(following),
    blocks.map(({ read }) => read),
  );
  // The blocks go one after the other: the first block of an unknown producer makes us ask the nodes, the next ones use the answer.
  for (const { read, block } of blocks) block.signer = await identifySigner(deps, following, read, nodes);
  pushLinked(
    deps,
    following,
    source,
    blocks.map(({ block }) => block),
  );
}

function pushLinked(deps: FollowDeps, following: Following, node: Node, blocks: readonly WindowBlock[]): void {
  for (const block of blocks) {
    const tip = tipOf(following);
    if (!isNext(tip, block)) {
      avoid(deps, following, node);
      throw new AppError(
        'NODE_REFUSED',
        `block ${block.number} (${block.id}) of ${block.time} names parent ${block.parentId}, but block ${tip.number} is ${tip.id} of ${tip.time}`,
        { retryable: true },
      );
    }
    following.window.push(block);
  }
}

/**
 * Some blocks carry no known signature, or a node calls them irreversible and too few known producers ever build on them. Then
 * they are not the chain that we follow, or the producers changed: forget them and ask another node.
 */
export async function dropStuckWindow(deps: FollowDeps, following: Following, node: Node): Promise<void> {
  const { window, nodeSolid } = following;
  const [first, own] = [window[0], ownSolidOf(following)];
  if (following.solidClaim !== null && own >= following.solidClaim) following.solidClaim = null;
  if (following.solidClaim === null && own < nodeSolid.number) following.solidClaim = nodeSolid.number;
  const newest = window.slice(-STUCK_BLOCKS);
  const signed = newest.filter(({ signer }) => signer !== null).length;
  const isForeign = newest.length === STUCK_BLOCKS && signed < STUCK_BLOCKS / 2;
  const isUnfounded =
    following.solidClaim !== null && tipOf(following).number >= following.solidClaim + STUCK_BLOCKS / 2;
  if (first === undefined || !(isForeign || isUnfounded)) return;
  const detail = isForeign
    ? `${node.origin} shows ${STUCK_BLOCKS} blocks up to ${tipOf(following).number} of which ${signed} are signed by known producers`
    : `${node.origin} calls block ${following.solidClaim} irreversible, but too few of the known producers built on it up to block ${tipOf(following).number}`;
  deps.pool.report(node, 'unverifiable', detail);
  await deps.alarms.raise('not-solid', String(first.number), detail);
  replaceFrom(following, 0);
  following.solidClaim = null;
  following.producersPeriod = -1;
  following.producersNextMs = 0;
  following.producersRetryMs = 0;
}
