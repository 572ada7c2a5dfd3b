import { AppError } from '../../domain/errors.ts';
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

/** Reads the next block when it is due. Where the preferred node misses it for too long, another one is asked. */
export async function followHead(
  deps: FollowDeps,
  following: Following,
  node: Node,
  nodes: readonly Node[],
): Promise<{ added: number; nextMs: number }> {
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
  if (added === 0) return { added, nextMs: pace.onMiss(deps.now()) };
  const { lateInfos } = following;
  if (!lateInfos.isNow) lateInfos.blocks = 0;
  // A block whose infos came later says nothing about when blocks can be read.
  isLate ||= lateInfos.isNow;
  lateInfos.isNow = false;
  return { added, nextMs: pace.onBlock(tipOf(following).time, deps.now(), isLate) };
}

/** Asks what is irreversible as soon as our headers prove something that a payer waits for; else seldom. */
export async function askSolidInTime(deps: FollowDeps, following: Following, nodes: readonly Node[]): Promise<void> {
  const { window, nodeSolid, pace } = following;
  const own = ownSolidOf(following);
  const isWaiting = window.some(({ number, hasSighting }) => hasSighting && number > nodeSolid.number && number <= own);
  // Where our own count stands still, the node may know more: that we fell behind, or that it sees other producers.
  const isFarBehind =
    window.length > FAR_BEHIND_BLOCKS || deps.now() - tipOf(following).time > FAR_BEHIND_BLOCKS * deps.blockMs;
  if ((own > nodeSolid.number || isFarBehind) && pace.maySpend(isWaiting, deps.now())) {
    // The preferred node has enough to do, where there is another; one that is behind is not asked twice in a row.
    const [first, ...others] = ofDifferentOperators(nodes, nodes.length);
    const askers = first === undefined ? [] : [...others, first];
    const asker = askers[following.solidAsker % askers.length];
    if (asker === undefined) return;
    await askSolid(deps, following, asker).catch((error: unknown) => {
      // The pool knows of it, and the next one is asked next time.
      if (!(error instanceof AppError)) throw error;
    });
    if (following.nodeSolid.number < own) following.solidAsker += 1;
  }
}
