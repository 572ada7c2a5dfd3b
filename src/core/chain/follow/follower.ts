import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { showPendingEvents } from '../../payments/contract-states.ts';
import { detectBlocks } from '../../payments/detect-blocks.ts';
import { expireInvoices } from '../../payments/expire-invoices.ts';
import { createHeldBack } from '../../payments/held-back.ts';
import type { Watching } from '../../payments/watching.ts';
import { findReplacement } from '../../store/chain/contract-states.ts';
import { type ChainCursor, findCursor, markLive } from '../../store/chain/cursor.ts';
import type { Lease } from '../../store/chain/leases.ts';
import type { ChainStatus } from '../../store/chain/status.ts';
import { type Node, ofDifferentOperators } from '../nodes/node.ts';
import { recogniseNodes } from '../nodes/node-pool.ts';
import { shippedCheckpoint } from '../proof/checkpoints.ts';
import { loadProducers, PERIOD_MS } from '../verify/producers.ts';
import { createWalk } from '../verify/walk-producers.ts';
import { catchUp, dropStuckWindow, isWindowFull } from './catch-up.ts';
import { extend } from './extend.ts';
import { askSolid, finalize, judgeableUpTo, ownSolidOf } from './finalize.ts';
import { certainTime, detectedTime, type FollowDeps, type Following, tipOf } from './following.ts';
import { keepProducers } from './identify-signer.ts';
import { createBatchPace } from './pace.ts';
import { awaitsOperator, gatherQuorum } from './quorum.ts';
import { startCursor } from './start-cursor.ts';
import { toChainBlock, type WindowBlock } from './window.ts';

/** If the watcher is more than this many blocks behind the irreversible chain, it reads blocks in ranges. */
const CATCH_UP_BLOCKS = 20;
/** How long to wait before an unreachable node is tried again. */
const AWAY_MS = 250;
/** Recording a block with payments takes about 10 ms on an idle machine. */
const IN_TIME_MS = 40;

export type Follower = {
  /** Does one round of following. Returns the pause until the next round. Throws errors of nodes and of the database. */
  step(lease: Lease, isStopping: () => boolean): Promise<{ pauseMs: number; examinedAgeMs: number }>;
  /** Clears the in-memory state, because another process may have recorded blocks in the meantime. */
  reset(): void;
  status(): Omit<ChainStatus, 'blind' | 'nodes' | 'energyPrice'> | null;
};

/**
 * Follows one network: verifies each block once, detects payments in it, and records it once it's irreversible. While catching up,
 * `onProgress` is called after each range of blocks.
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
      // Read no blocks after the replacement of the contract. Otherwise nodes would be blamed for payments that the still unknown successor
      // logs.
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
      // This is the age of the examined block, not of the node's newest block, because a node whose chain is shorter than ours shows
      // nothing new, even if its newest block is recent. Catching up can take long, so the age is measured at the start of the call.
      const after = hasChanged ? await findCursor(deps.db, deps.network) : null;
      return { pauseMs, examinedAgeMs: readAt - (after ?? cursor).head.time };
    },
  };
}

type Turn = { deps: FollowDeps; watching: Watching; following: Following; node: Node; nodes: readonly Node[] };
type Turned = { pauseMs: number; hasChanged: boolean };
type Progress = ReturnType<typeof createProgress>;

/** Reads ranges of blocks that have been irreversible for a while. */
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
  // This node may lack the block that another node has called irreversible.
  const reported = following.nodeSolid;
  following.nodeSolid = following.base;
  await askSolid(deps, following, node).catch((error: unknown) => {
    following.nodeSolid = reported;
    throw error;
  });
  await catchUp(deps, watching, following, { node, nodes, isStopping, onProgress: report });
  await askSolid(deps, following, node);
  await dropStuckWindow(deps, following, node);
  // While operators disagree, Quittance can only wait: briefly if an operator is unreachable, and longer if their answers differ.
  const waitMs = awaitsOperator(following) ? AWAY_MS : deps.blockMs;
  return { pauseMs: from === place() ? waitMs : 0, hasChanged: true };
}

/** Detects payments in the newest blocks, and records the blocks that have become irreversible. */
async function followNewest({ deps, watching, following, node, nodes }: Turn, progress: Progress): Promise<Turned> {
  // Verified blocks are still recorded if the next block can't be read or verified.
  const head = await followHead(deps, following, node, nodes).catch((error: unknown) => ({ error }));
  await gatherQuorum(deps, following, nodes, { isNewestAsked: 'added' in head && head.added > 0 });
  const detectedMs = await timed(() =>
    detect(watching, following).catch((error: unknown) => {
      // The database has different head blocks than expected, so write ours again.
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

/** A local network may create blocks only on demand, so its newest block counts as current for this long. */
const LOCAL_LIVE_MS = 30_000;

/**
 * Records in the database that the chain has no later block yet, once per block. A stuck node can claim this for hours, but a real chain
 * keeps growing.
 */
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

/** Returns the nodes in order of preference, with any node that is currently avoided at the end. */
function preferring(nodes: readonly Node[], following: Following | null): Node[] {
  const avoided = following?.avoided ?? null;
  if (avoided === null || avoided.untilMs < performance.now()) return [...nodes];
  const isAvoided = ({ operator }: Node) => operator === avoided.operator;
  return [...nodes.filter((node) => !isAvoided(node)), ...nodes.filter(isAvoided)];
}

/** Starts at the solid cursor, using only the state in the database. */
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
    pace: createBatchPace(deps.blockMs, () => spareAsks(nodes, deps.blockMs, deps.now())),
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
  return `no ${network} node is available now: ${states.join('; ')}`;
}

/**
 * Stores verified blocks above the solid one that are missing in the database, completely or in part. After a restart, nothing is stored
 * until as many blocks are verified as had been examined before. Otherwise invoices would lose sightings that are still valid.
 */
async function detect(watching: Watching, following: Following): Promise<void> {
  const { window, orphaned } = following;
  const firstUnsigned = window.findIndex(({ signer }) => signer === null);
  const signed = firstUnsigned < 0 ? window : window.slice(0, firstUnsigned);
  const first = signed.findIndex(isBehind);
  const blocks = signed.slice(first);
  const [lowest, newest] = [blocks[0], blocks.at(-1)];
  if (first < 0 || lowest === undefined || newest === undefined) return;
  const cursor = await findCursor(watching.db, watching.network);
  if (cursor !== null && newest.number < cursor.head.number) return;
  const open = blocks.filter(({ agreed }) => agreed === null);
  const detected = await detectBlocks(
    watching,
    lowest.number - 1,
    blocks.map(toChainBlock),
    certainTime(following),
    open,
    orphaned.map(toChainBlock),
  );
  orphaned.splice(0);
  for (const block of blocks) {
    block.detected = block.agreed === null ? 'proven' : 'everything';
    block.hasSighting = detected.has(block.number);
  }
}

/**
 * Stores the contract's announcements above the solid block, once all blocks up to the newest examined one are sighted. Repeats this
 * whenever the announcements change, including when a block that has one is orphaned.
 */
async function showContractEvents(deps: FollowDeps, watching: Watching, following: Following): Promise<void> {
  const { window } = following;
  const isSighted =
    window.length > 0 && window.every(({ signer, detected }) => signer === null || detected !== 'nothing');
  if (!isSighted) return;
  const certain = window.filter(({ detected }) => detected !== 'nothing');
  const events = certain.flatMap(({ agreed }) => agreed?.logs.events ?? []);
  const shown = JSON.stringify(events.map(({ name, txId, logIndex }) => [name, txId, logIndex]));
  if (shown === following.shownEvents) return;
  await showPendingEvents({ ...watching, log: deps.log }, events);
  following.shownEvents = shown;
}

function isBehind({ detected, agreed }: WindowBlock): boolean {
  return detected === 'nothing' || (detected === 'proven' && agreed !== null);
}

const LOG_MS = 10_000;
/** Number of blocks over which requests per block are averaged. */
const MEASURED_BLOCKS = 20;

/** Tracks a follower's position and speed for metrics, the log, and the status that other processes read. */
export function createProgress({ network, metrics, log, pool }: FollowDeps) {
  let run: { startedMs: number; from: number; loggedMs: number } | null = null;
  let catchUp: ChainStatus['catchUp'] = null;
  const head = { requests: 0, blocks: 0, requestsPerBlock: null as number | null };
  const countRequests = () => pool.health().reduce((sum, { requests }) => sum + requests, 0);
  const setGauges = (following: Following) => {
    metrics.chainHeadNumber.set({ network }, tipOf(following).number);
    metrics.chainOwnSolidNumber.set({ network }, ownSolidOf(following));
    metrics.chainProcessedNumber.set({ network }, following.base.number);
    metrics.chainLagBlocks.set({ network }, Math.max(0, following.nodeSolid.number - following.base.number));
    metrics.chainCatchUpRate.set({ network }, catchUp?.blocksPerSecond ?? 0);
    metrics.chainCatchUpSeconds.set({ network }, catchUp?.secondsLeft ?? 0);
  };
  return {
    /** Call this before reading blocks in ranges, so that a rate is known from the first range on. */
    onBehind: (following: Following) => {
      const nowMs = performance.now();
      run ??= { startedMs: nowMs, from: following.base.number, loggedMs: nowMs };
    },
    /** Call this after a range has been recorded while catching up. */
    onCatchUp: (following: Following) => {
      if (run === null) return;
      const nowMs = performance.now();
      head.blocks = 0;
      const blocksPerSecond = (following.base.number - run.from) / Math.max(0.001, (nowMs - run.startedMs) / 1000);
      const left = following.nodeSolid.number - following.base.number;
      const rounded = Math.round(blocksPerSecond * 10) / 10;
      // No rate is known while blocks are waiting to be recorded.
      const isKnown = rounded > 0 && left > 0;
      catchUp = {
        blocksPerSecond: isKnown ? rounded : null,
        secondsLeft: isKnown ? Math.ceil(left / blocksPerSecond) : null,
      };
      setGauges(following);
      if (nowMs - run.loggedMs < LOG_MS) return;
      run.loggedMs = nowMs;
      const rate = isKnown ? catchUp : {};
      log.info({ processed: following.base.number, left, ...rate }, 'catching up with the chain');
    },
    /** Call this after reading the head; `added` is the number of new blocks. */
    onHead: (following: Following, added: number) => {
      if (run !== null) log.info({ processed: following.base.number }, 'caught up with the chain');
      run = null;
      catchUp = null;
      if (head.blocks === 0) head.requests = countRequests();
      head.blocks += added;
      if (head.blocks > MEASURED_BLOCKS) {
        head.requestsPerBlock = Math.round(((countRequests() - head.requests) / head.blocks) * 100) / 100;
        head.blocks = 0;
      }
      setGauges(following);
    },
    status: (following: Following): Omit<ChainStatus, 'blind' | 'nodes'> => ({
      headNumber: tipOf(following).number,
      ownSolidNumber: ownSolidOf(following),
      nodeSolidNumber: following.nodeSolid.number,
      processedNumber: following.base.number,
      catchUp,
      openBlock: openBlockOf(following),
      requestsPerBlock: head.requestsPerBlock,
    }),
  };
}

function openBlockOf(following: Following): number | null {
  const limit = Math.min(ownSolidOf(following), following.nodeSolid.number);
  return following.window.find(({ agreed, number }) => agreed === null && number <= limit)?.number ?? null;
}

/** If the newest block is older than this many block times, either Quittance or the network has fallen behind. */
const FAR_BEHIND_BLOCKS = 60;

/**
 * Requests per block for the irreversible block while payers are always waiting. A node's daily limit must last all day, and blocks have
 * priority: each costs two requests, plus a share for misses, balances and lookups.
 */
const MOST_ASKS = 1;
const LEAST_ASKS = 0.3;
const BLOCK_REQUESTS = 2.4;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Reads the next block when it's due. If the preferred node lacks it for too long, asks another node. `isNewest` means that no later block
 * exists.
 */
async function followHead(
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
    if (isLate) deps.pool.report(node, 'lagging', `it has no block ${tipOf(following).number}, but other nodes do`);
  }
  if (added === 0) return { added, nextMs: pace.onMiss(deps.now()), isNewest: true };
  const { lateInfos } = following;
  if (!lateInfos.isNow) lateInfos.blocks = 0;
  // If the infos came later than the block, the time says nothing about when blocks become readable.
  isLate ||= lateInfos.isNow;
  lateInfos.isNow = false;
  return { added, nextMs: pace.onBlock(tipOf(following).time, deps.now(), isLate) };
}

/**
 * Asks for the newest irreversible block as soon as our headers prove one that a payer is waiting for, or as soon as nodes show blocks
 * again after an outage. Otherwise it asks rarely. `hasGrown` means that a new block was read.
 */
async function askSolidInTime(
  deps: FollowDeps,
  following: Following,
  nodes: readonly Node[],
  hasGrown: boolean,
): Promise<void> {
  const { window, nodeSolid, pace } = following;
  const own = ownSolidOf(following);
  const isWaiting = window.some(({ number, hasSighting }) => hasSighting && number > nodeSolid.number && number <= own);
  // If our own count has stalled, the node may know more: Quittance may have fallen behind, or the producers may have changed.
  const isFarBehind =
    window.length > FAR_BEHIND_BLOCKS || deps.now() - tipOf(following).time > FAR_BEHIND_BLOCKS * deps.blockMs;
  // Once a node reports a backlog, it's read in ranges.
  const isBack = isFarBehind && hasGrown && performance.now() >= following.backNextMs;
  if (isBack) following.backNextMs = performance.now() + deps.blockMs;
  if (isBack || ((own > nodeSolid.number || isFarBehind) && pace.maySpend(isWaiting, deps.now()))) {
    // A node that turned out to be behind isn't asked again immediately.
    const askers = solidAskers(nodes);
    const asker = askers[following.solidAsker % askers.length];
    if (asker === undefined) return;
    await askSolid(deps, following, asker).catch((error: unknown) => {
      // The pool has already recorded the failure, and the next request goes to the next node.
      if (!(error instanceof AppError)) throw error;
    });
    if (following.nodeSolid.number < own) following.solidAsker += 1;
  }
}

/** The preferred node comes last, because it's already serving the blocks. */
function solidAskers<Named extends Pick<Node, 'operator'>>(nodes: readonly Named[]): Named[] {
  const [first, ...others] = ofDifferentOperators(nodes, nodes.length);
  return first === undefined ? [] : [...others, first];
}

/** Returns how many requests per block the first asker can spare for the irreversible block until the end of the UTC day. */
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
