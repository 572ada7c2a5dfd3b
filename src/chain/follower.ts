import { AppError } from '../domain/errors.ts';
import { expireInvoices } from '../payments/expire-invoices.ts';
import type { Watching } from '../payments/watching.ts';
import { type ChainCursor, findCursor } from '../store/chain-cursor.ts';
import type { ChainStatus } from '../store/chain-status.ts';
import type { Lease } from '../store/leases.ts';
import { keepProducers } from './attest.ts';
import { catchUp, dropStuckWindow } from './catch-up.ts';
import { shippedCheckpoint } from './checkpoints.ts';
import { askSolidInTime, followHead } from './follow-head.ts';
import { type FollowDeps, type Following, sightedTime, tipOf } from './following.ts';
import type { Node } from './node.ts';
import { createPace } from './pace.ts';
import { loadProducers } from './producers.ts';
import { createProgress } from './progress.ts';
import { askSolid, promote } from './promote.ts';
import { recogniseNodes } from './recognise-nodes.ts';
import { sight } from './sight.ts';
import { startCursor } from './start-cursor.ts';
import { gatherVotes } from './votes.ts';
import { createWalk } from './walk-producers.ts';

/** Further behind what is irreversible than this, blocks are read in ranges. */
const CATCH_UP_BLOCKS = 20;
/**
 * Requests a block for what is irreversible while payers wait all the time: with one node they come on top of those for the
 * blocks, and a free key must last the day; with several another node is asked, which has but the logs to show.
 */
const SINGLE_ASKS = 0.3;
const SHARED_ASKS = 1;

export type Follower = {
  /** One look at the chain. Returns the pause until the next. Errors of nodes and of the database are thrown. */
  step(lease: Lease, isStopping: () => boolean): Promise<{ pauseMs: number; examinedAgeMs: number }>;
  /** Forgets what is only in memory, because another process may have gone on. */
  reset(): void;
  status(): Omit<ChainStatus, 'blind' | 'nodes'> | null;
};

/**
 * Follows one network: verifies each block once, sights it, and records it when it is irreversible. `onProgress` is called
 * after each range of blocks while catching up.
 */
export function createFollower(
  deps: FollowDeps,
  onProgress: () => Promise<void>,
  checkpoint = shippedCheckpoint(deps.network),
): Follower {
  const walk = checkpoint && createWalk(deps, checkpoint);
  let following: Following | null = null;
  let isGenesisKnown = false;
  const progress = createProgress(deps);
  return {
    reset: () => {
      following = null;
    },
    status: () => (following === null ? null : progress.status(following)),
    step: async (lease, isStopping) => {
      if (!isGenesisKnown) isGenesisKnown = await recogniseNodes(deps);
      const nodes = preferring(await deps.pool.available(), following);
      const [node] = nodes;
      if (node === undefined) throw new AppError('NO_NODE', noNodeMessage(deps), { retryable: true });
      const watching: Watching = { ...deps, lease };
      const readAt = deps.now();
      const cursor = (await findCursor(deps.db, deps.network)) ?? (await startCursor(deps, nodes, walk));
      if (following === null || following.base.id !== cursor.solid.id) {
        following = await rootAt(deps, cursor, node, nodes);
      }
      const current = following;
      let pauseMs = 0;
      let hasChanged = true;
      if (current.nodeSolid.number - tipOf(current).number > CATCH_UP_BLOCKS) {
        const tell = () => {
          progress.onCatchUp(current);
          return onProgress();
        };
        progress.onBehind(current);
        const from = [current.base.number, tipOf(current).number].join();
        // What one node called irreversible, another one need not have.
        const told = current.nodeSolid;
        current.nodeSolid = current.base;
        await askSolid(deps, current, node).catch((error: unknown) => {
          current.nodeSolid = told;
          throw error;
        });
        await catchUp(deps, watching, current, { node, nodes, isStopping, onProgress: tell });
        await askSolid(deps, current, node);
        await dropStuckWindow(deps, current, node);
        // Where operators do not agree the window is full, and nothing can be done but wait.
        if (from === [current.base.number, tipOf(current).number].join()) pauseMs = deps.blockMs;
      } else {
        // A next block that cannot be read or verified holds up nothing of what is verified already.
        const head = await followHead(deps, current, node, nodes).catch((error: unknown) => ({ error }));
        await gatherVotes(deps, current, nodes, { isNewestAsked: 'added' in head && head.added > 0 });
        await sight(watching, current).catch((error: unknown) => {
          // The database has other head blocks than we think: write ours anew.
          for (const block of current.window) block.sighted = 'nothing';
          throw error;
        });
        await askSolidInTime(deps, current, nodes);
        const promoted = await promote(deps, watching, current);
        await dropStuckWindow(deps, current, node);
        if ('error' in head) throw head.error;
        hasChanged = head.added + promoted > 0;
        pauseMs = head.nextMs;
        progress.onHead(current, head.added);
      }
      while (hasChanged && !isStopping() && (await expireInvoices(watching, sightedTime(current))).isMoreLeft);
      // The examined block and not the node's: a node whose chain is shorter than what we examined shows us nothing, however
      // fresh it is. Measured from when it was asked, for catching up can take long.
      const after = hasChanged ? await findCursor(deps.db, deps.network) : null;
      return { pauseMs, examinedAgeMs: readAt - (after ?? cursor).head.time };
    },
  };
}

/** The nodes in order of preference, one that is avoided for a moment last. */
function preferring(nodes: readonly Node[], following: Following | null): Node[] {
  const avoided = following?.avoided ?? null;
  if (avoided === null || avoided.untilMs < performance.now()) return [...nodes];
  const isAvoided = ({ operator }: Node) => operator === avoided.operator;
  return [...nodes.filter((node) => !isAvoided(node)), ...nodes.filter(isAvoided)];
}

function otherOperators([first, ...rest]: readonly Node[]): Node[] {
  return rest.filter(({ operator }) => operator !== first?.operator);
}

/** Starts from the solid cursor with nothing but what the database knows. */
async function rootAt(deps: FollowDeps, cursor: ChainCursor, node: Node, nodes: readonly Node[]): Promise<Following> {
  const { db, network } = deps;
  const following: Following = {
    base: cursor.solid,
    window: [],
    producers: await loadProducers(db, network),
    producersPeriod: -1,
    producersNextMs: 0,
    producersRetryMs: 0,
    suspect: null,
    nodeSolid: cursor.solid,
    solidClaim: null,
    agreedSolid: 0,
    solidAsker: 0,
    lateInfos: { isNow: false, blocks: 0 },
    avoided: null,
    pace: createPace(deps.blockMs, otherOperators(nodes).length > 0 ? SHARED_ASKS : SINGLE_ASKS),
    contradicting: new Map(),
    votesNextMs: 0,
    disputeNextMs: 0,
    rangeFailures: new Map(),
  };
  await keepProducers(deps, following, nodes);
  await askSolid(deps, following, node);
  return following;
}

function noNodeMessage({ pool, network }: FollowDeps): string {
  const states = pool
    .health()
    .map(({ url, state, reason }) => `${url} is ${state}${reason === null ? '' : ` (${reason})`}`);
  return `no node of ${network} can be asked now: ${states.join('; ')}`;
}
