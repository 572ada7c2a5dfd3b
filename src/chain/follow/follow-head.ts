import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import { PERIOD_MS } from '../verify/producers.ts';
import { isWindowFull } from './catch-up.ts';
import { extend } from './extend.ts';
import { askSolid, ownSolidOf } from './finalize.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';
import { keepProducers } from './identify-signer.ts';

/** A newest block that is older than this many block times means that we, or the network, fell behind. */
const FAR_BEHIND_BLOCKS = 60;

/**
 * Requests a block for what is irreversible while payers wait all the time. A node with a limit for the day must last it, and the
 * blocks themselves come first: two requests for each, and some for misses, balances and look-ups.
 */
const MOST_ASKS = 1;
const LEAST_ASKS = 0.3;
const BLOCK_REQUESTS = 2.4;
const DAY_MS = 24 * 60 * 60_000;

/** Reads the next block when it is due. Where the preferred node misses it for too long, another one is asked. `isNewest`: there is none. */
export async function followHead(
  deps: FollowDeps,
  following: Following,
  node: Node,
  nodes: readonly Node[],
): Promise<{ added: number; nextMs: number; isNewest?: true }> {
  const { pace } = following;
  if (isWindowFull(following)) return { added: 0, nextMs: deps.blockMs };
  const period = Math.floor(tipOf(following).time / PERIOD_MS);
  if (period !== following.producersPeriod && performance.now() >= following.producersRetryMs) {
    await keepProducers(deps, following, nodes);
  }
  following.rangeFailures.clear();
  let added = (await extend(deps, following, node, nodes)).length;
  let isLate = false;
  if (added === 0 && pace.isOverdue(deps.now())) {
    const other = nodes.find(({ operator }) => operator !== node.operator);
    if (other !== undefined) added = (await extend(deps, following, other, nodes)).length;
    isLate = added > 0;
    if (isLate) deps.pool.report(node, 'lagging', `it has no block ${tipOf(following).number}, others do`);
  }
  if (added === 0) return { added, nextMs: pace.onMiss(deps.now()), isNewest: true };
  const { lateInfos } = following;
  if (!lateInfos.isNow) lateInfos.blocks = 0;
  // A block whose infos came later says nothing about when blocks can be read.
  isLate ||= lateInfos.isNow;
  lateInfos.isNow = false;
  return { added, nextMs: pace.onBlock(tipOf(following).time, deps.now(), isLate) };
}

/**
 * Asks what is irreversible as soon as our headers prove something that a payer waits for, or a node that was away shows blocks again;
 * else seldom. `hasGrown`: a new block was read.
 */
export async function askSolidInTime(
  deps: FollowDeps,
  following: Following,
  nodes: readonly Node[],
  hasGrown: boolean,
): Promise<void> {
  const { window, nodeSolid, pace } = following;
  const own = ownSolidOf(following);
  const isWaiting = window.some(({ number, hasSighting }) => hasSighting && number > nodeSolid.number && number <= own);
  // Where our own count stands still, the node may know more: that we fell behind, or that it sees other producers.
  const isFarBehind =
    window.length > FAR_BEHIND_BLOCKS || deps.now() - tipOf(following).time > FAR_BEHIND_BLOCKS * deps.blockMs;
  // What there is to catch up with is read in ranges, as soon as a node says how much that is.
  const isBack = isFarBehind && hasGrown && performance.now() >= following.backNextMs;
  if (isBack) following.backNextMs = performance.now() + deps.blockMs;
  if (isBack || ((own > nodeSolid.number || isFarBehind) && pace.maySpend(isWaiting, deps.now()))) {
    // One that is behind is not asked twice in a row.
    const askers = solidAskers(nodes);
    const asker = askers[following.solidAsker % askers.length];
    if (asker === undefined) return;
    await askSolid(deps, following, asker).catch((error: unknown) => {
      // The pool knows of it, and the next one is asked next time.
      if (!(error instanceof AppError)) throw error;
    });
    if (following.nodeSolid.number < own) following.solidAsker += 1;
  }
}

/** The preferred node has enough to do, where there is another. */
function solidAskers<Named extends Pick<Node, 'operator'>>(nodes: readonly Named[]): Named[] {
  const [first, ...others] = ofDifferentOperators(nodes, nodes.length);
  return first === undefined ? [] : [...others, first];
}

/** How many requests a block the first asker can spare for what is irreversible, from now to the end of the UTC day. */
export function spareAsks(
  nodes: readonly Pick<Node, 'operator' | 'requestsLeft'>[],
  blockMs: number,
  now: UnixMs,
): number {
  const left = solidAskers(nodes)[0]?.requestsLeft() ?? null;
  if (left === null) return MOST_ASKS;
  const blocksLeft = (DAY_MS - (now % DAY_MS)) / blockMs;
  return Math.min(MOST_ASKS, Math.max(LEAST_ASKS, left / blocksLeft - BLOCK_REQUESTS));
}
