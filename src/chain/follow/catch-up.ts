import { AppError } from '../../domain/errors.ts';
import type { Watching } from '../../payments/watching.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import type { AccountHex } from '../../tron/address.ts';
import type { Node } from '../nodes/node.ts';
import { RANGE_BLOCKS, type ReadBlock, readRange } from '../verify/read-block.ts';
import { readBlock, withLogs } from '../verify/read-with-logs.ts';
import { assertLater, extend } from './extend.ts';
import { finalize, ownSolidOf } from './finalize.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';
import { avoid, identifySigner } from './identify-signer.ts';
import { gatherQuorum, othersFor, withQuorum } from './quorum.ts';
import { isNext, type WindowBlock } from './window.ts';

/** Ranges that are read ahead of the one that is recorded: 2.5 MB of JSON each on the main network. */
const PREFETCH_RANGES = 2;
/** Requests for logs that run at the same time, of each range. */
const PARALLEL_LOGS = 4;
/** Ranges in a row that a node may fail before it is asked for single blocks. */
const MAX_RANGE_FAILURES = 3;
/** Blocks that wait for agreement, at most: half an hour of them, up to a hundred megabytes. */
const MAX_OPEN_BLOCKS = 600;
/** Verified blocks above the solid one, at most: four hours in which too few producers work, up to 160 megabytes. */
const MAX_WINDOW_BLOCKS = 4800;
/** Blocks after which a claim of a node, or a window, must have been borne out: 19 different producers take one minute. */
const STUCK_BLOCKS = 200;

/** Whether no further block should be read before some were recorded. */
export function isWindowFull({ window }: Following): boolean {
  const open = window.filter(({ agreed }) => agreed === null).length;
  return open + RANGE_BLOCKS > MAX_OPEN_BLOCKS || window.length + RANGE_BLOCKS > MAX_WINDOW_BLOCKS;
}

type Range = { first: number; last: number; reads: Promise<ReadBlock[]> };

/**
 * Replays the irreversible blocks after the newest verified one, in order, with ranges read ahead; none of them is skipped
 * however long the gap. Calls `onProgress` after each range. Ends at what the node said is irreversible, at a full window,
 * when `isStopping`, or with the error of a block that cannot be read or verified; the next call goes on from there.
 */
export async function catchUp(
  deps: FollowDeps,
  watching: Watching,
  following: Following,
  {
    node,
    nodes,
    isStopping,
    onProgress,
  }: {
    node: Node;
    nodes: readonly Node[];
    isStopping(): boolean;
    onProgress(): Promise<void>;
  },
): Promise<void> {
  const ahead: Range[] = [];
  const target = following.nodeSolid.number;
  let next = tipOf(following).number + 1;
  while (!isStopping() && tipOf(following).number < target) {
    if (isWindowFull(following)) break;
    for (; ahead.length < PREFETCH_RANGES && next <= target; next = (ahead.at(-1)?.last ?? next) + 1) {
      ahead.push(startRange(deps, following, node, next, Math.min(target, next + RANGE_BLOCKS - 1)));
    }
    const range = ahead.shift();
    if (range === undefined) break;
    const reads = await countFailures(following, node, range.reads);
    if (reads[0]?.block.parentId !== tipOf(following).id) {
      // The blocks verified before are a branch that lost: walk back to where the chain split, one block at a time.
      await extend(deps, following, node, nodes);
      return;
    }
    assertLater(deps, tipOf(following), reads);
    // The blocks go one after the other: the first block of an unknown producer makes us ask the nodes, the next ones use the answer.
    const signers: (AccountHex | null)[] = [];
    for (const read of reads) signers.push(await identifySigner(deps, following, read, nodes));
    const blocks: WindowBlock[] = await Promise.all(
      reads.map((read, index) => withQuorum(deps, read, signers[index] ?? null, othersFor(deps, nodes, read.node))),
    );
    pushLinked(deps, following, node, blocks);
    if ((await finalize(deps, watching, following)) > 0) deps.pool.praise(node);
    await onProgress();
  }
  await gatherQuorum(deps, following, nodes, { isNewestAsked: false });
  await finalize(deps, watching, following);
}

function startRange(deps: FollowDeps, following: Following, node: Node, first: number, last: number): Range {
  const isRanged = (following.rangeFailures.get(node.origin) ?? 0) < MAX_RANGE_FAILURES;
  const reads = isRanged ? readWithLogs(deps, node, first, last) : readOneByOne(deps, node, first, last);
  // An earlier range may fail first; nobody waits for this one then.
  reads.catch(() => undefined);
  return { first, last, reads };
}

/** A node that shows no range, for it does not know the call or for the blocks are too large at once, is asked for single blocks. */
async function countFailures(following: Following, { origin }: Node, reads: Promise<ReadBlock[]>) {
  try {
    const blocks = await reads;
    if ((following.rangeFailures.get(origin) ?? 0) < MAX_RANGE_FAILURES) following.rangeFailures.delete(origin);
    return blocks;
  } catch (error) {
    following.rangeFailures.set(origin, (following.rangeFailures.get(origin) ?? 0) + 1);
    throw error;
  }
}

async function readOneByOne(deps: FollowDeps, node: Node, first: number, last: number): Promise<ReadBlock[]> {
  const reads: ReadBlock[] = [];
  for (let number = first; number <= last; number += 1) {
    const read = await readBlock(deps, node, number).catch((error: unknown) => {
      if (reads.length === 0) throw error;
      return null;
    });
    if (read === null) break;
    reads.push(read);
  }
  return reads;
}

/** Up to the first block that cannot be read or judged: those before it need not wait for it. */
async function readWithLogs(deps: FollowDeps, node: Node, first: number, last: number): Promise<ReadBlock[]> {
  const blocks = await readRange(deps, node, first, last);
  const reads = await inGroups(blocks, PARALLEL_LOGS, (block) =>
    withLogs(deps, node, block).then(
      (read) => ({ read, error: null }),
      (error: unknown) => ({ read: null, error }),
    ),
  );
  const ready: ReadBlock[] = [];
  for (const { read, error } of reads) {
    if (read === null && ready.length === 0) throw error;
    if (read === null) break;
    ready.push(read);
  }
  return ready;
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
  following.window.splice(0);
  following.solidClaim = null;
  following.producersPeriod = -1;
  following.producersNextMs = 0;
  following.producersRetryMs = 0;
}
