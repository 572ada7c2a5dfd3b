import { AppError } from '../../domain/errors.ts';
import { expireInvoices } from '../../payments/expire-invoices.ts';
import { createHeldBack } from '../../payments/held-back.ts';
import type { Watching } from '../../payments/watching.ts';
import { findReplacement } from '../../store/chain/contract-states.ts';
import { type ChainCursor, findCursor, markLive } from '../../store/chain/cursor.ts';
import type { Lease } from '../../store/chain/leases.ts';
import type { ChainStatus } from '../../store/chain/status.ts';
import type { Node } from '../nodes/node.ts';
import { recogniseNodes } from '../nodes/recognise-nodes.ts';
import { shippedCheckpoint } from '../proof/checkpoints.ts';
import { loadProducers } from '../verify/producers.ts';
import { createWalk } from '../verify/walk-producers.ts';
import { catchUp, dropStuckWindow } from './catch-up.ts';
import { detect, showContractEvents } from './detect.ts';
import { askSolid, finalize, judgeableUpTo } from './finalize.ts';
import { askSolidInTime, followHead, spareAsks } from './follow-head.ts';
import { detectedTime, type FollowDeps, type Following, tipOf } from './following.ts';
import { keepProducers } from './identify-signer.ts';
import { createPace } from './pace.ts';
import { createProgress } from './progress.ts';
import { awaitsOperator, gatherQuorum } from './quorum.ts';
import { startCursor } from './start-cursor.ts';

/** Further behind what is irreversible than this, blocks are read in ranges. */
const CATCH_UP_BLOCKS = 20;
/** A node that is away may be back after so long. */
const AWAY_MS = 250;
/** Recording a block with payments takes 10 ms on a machine that has nothing else to do. */
const IN_TIME_MS = 40;

export type Follower = {
  /** Looks at the chain once. Returns the pause until the next look. Throws the errors of nodes and of the database. */
  step(lease: Lease, isStopping: () => boolean): Promise<{ pauseMs: number; examinedAgeMs: number }>;
  /** Forgets what is only in memory, because another process may have gone on. */
  reset(): void;
  status(): Omit<ChainStatus, 'blind' | 'nodes' | 'energyPrice'> | null;
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
  const held = deps.held ?? createHeldBack();
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
      // Blocks after the recorded event: reading them would only blame nodes for payments that the unknown successor logs.
      if ((await judgeableUpTo(deps, current)) < current.base.number) {
        if (current.nodeSolid.number <= current.base.number) await askSolid(deps, current, node);
        return { pauseMs: deps.blockMs, examinedAgeMs: readAt - cursor.head.time };
      }
      const turn: Turn = { deps, watching, following: current, node, nodes };
      const isBehind = current.nodeSolid.number - tipOf(current).number > CATCH_UP_BLOCKS;
      const { pauseMs, hasChanged } = isBehind
        ? await comeCloser(turn, progress, isStopping, onProgress)
        : await followNewest(turn, progress);
      while (hasChanged && !isStopping() && (await expireInvoices(watching, detectedTime(current), held)).isMoreLeft);
      // The age is that of the examined block, not of the node's newest: a node whose chain is shorter than ours shows us nothing,
      // however fresh it is. It counts from the start of the look, for catching up can take long.
      const after = hasChanged ? await findCursor(deps.db, deps.network) : null;
      return { pauseMs, examinedAgeMs: readAt - (after ?? cursor).head.time };
    },
  };
}

type Turn = { deps: FollowDeps; watching: Watching; following: Following; node: Node; nodes: readonly Node[] };
type Turned = { pauseMs: number; hasChanged: boolean };
type Progress = ReturnType<typeof createProgress>;

/** Reads a range of blocks that are long irreversible. */
async function comeCloser(
  { deps, watching, following, node, nodes }: Turn,
  progress: Progress,
  isStopping: () => boolean,
  onProgress: () => Promise<void>,
): Promise<Turned> {
  const place = () => [following.base.number, tipOf(following).number].join();
  const report = () => {
    deps.requestShare?.onBehind();
    progress.onCatchUp(following);
    return onProgress();
  };
  progress.onBehind(following);
  deps.requestShare?.onBehind();
  const from = place();
  // This node may not have the block that another node called irreversible.
  const reported = following.nodeSolid;
  following.nodeSolid = following.base;
  await askSolid(deps, following, node).catch((error: unknown) => {
    following.nodeSolid = reported;
    throw error;
  });
  await catchUp(deps, watching, following, { node, nodes, isStopping, onProgress: report });
  await askSolid(deps, following, node);
  await dropStuckWindow(deps, following, node);
  // Where operators do not agree nothing can be done but wait: a moment for one that is away, longer for those that differ.
  const waitMs = awaitsOperator(following) ? AWAY_MS : deps.blockMs;
  return { pauseMs: from === place() ? waitMs : 0, hasChanged: true };
}

/** Detects payments in the newest blocks, and records those that became irreversible. */
async function followNewest({ deps, watching, following, node, nodes }: Turn, progress: Progress): Promise<Turned> {
  // A next block that cannot be read or verified holds up nothing of what is verified already.
  const head = await followHead(deps, following, node, nodes).catch((error: unknown) => ({ error }));
  await gatherQuorum(deps, following, nodes, { isNewestAsked: 'added' in head && head.added > 0 });
  const detectedMs = await timed(() =>
    detect(watching, following).catch((error: unknown) => {
      // The database has other head blocks than we think: write ours anew.
      for (const block of following.window) block.detected = 'nothing';
      throw error;
    }),
  );
  await showContractEvents(deps, watching, following);
  if ('isNewest' in head) await noteLive(deps, following);
  await askSolidInTime(deps, following, nodes, 'added' in head && head.added > 0);
  let finalized = 0;
  const finalizedMs = await timed(async () => {
    finalized = await finalize(deps, watching, following);
  });
  if ('added' in head && head.added + finalized > 0) {
    deps.requestShare?.onWork(detectedMs + finalizedMs, IN_TIME_MS);
  }
  await dropStuckWindow(deps, following, node);
  if ('error' in head) throw head.error;
  progress.onHead(following, head.added);
  return { pauseMs: head.nextMs, hasChanged: head.added + finalized > 0 };
}

/** On a local network blocks may come when a person wants them, however late: so long its end is taken for that of now. */
const LOCAL_LIVE_MS = 30_000;

/** Tells the database that the chain has no later block, once for each: a node that is stuck says so for hours, and a real chain goes on. */
async function noteLive({ db, network, slotMs }: FollowDeps, following: Following): Promise<void> {
  const { number } = tipOf(following);
  const { live } = following;
  if (number === live.number && (slotMs !== null || performance.now() - live.ms < LOCAL_LIVE_MS)) return;
  await markLive(db, network);
  following.live = { number, ms: performance.now() };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** The nodes in order of preference, one that is avoided for a moment last. */
function preferring(nodes: readonly Node[], following: Following | null): Node[] {
  const avoided = following?.avoided ?? null;
  if (avoided === null || avoided.untilMs < performance.now()) return [...nodes];
  const isAvoided = ({ operator }: Node) => operator === avoided.operator;
  return [...nodes.filter((node) => !isAvoided(node)), ...nodes.filter(isAvoided)];
}

/** Starts from the solid cursor with nothing but what the database knows. */
async function rootAt(deps: FollowDeps, cursor: ChainCursor, node: Node, nodes: readonly Node[]): Promise<Following> {
  const { db, network } = deps;
  const replacedIn = await findReplacement(db, network);
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
    unproven: { inARow: 0, times: [] },
    pace: createPace(deps.blockMs, () => spareAsks(nodes, deps.blockMs, deps.now())),
    shownEvents: null,
    diagnosingFork: new Map(),
    quorumNextMs: 0,
    openSinceMs: null,
    backNextMs: 0,
    disputeNextMs: 0,
    live: { number: -1, ms: 0 },
    orphaned: [],
    rangeFailures: new Map(),
    judgedUpTo: replacedIn === null ? Number.POSITIVE_INFINITY : cursor.solid.number,
  };
  if (replacedIn !== null) deps.fees.noteReplaced(replacedIn);
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
