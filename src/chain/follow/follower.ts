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
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import { recogniseNodes } from '../nodes/recognise-nodes.ts';
import { shippedCheckpoint } from '../proof/checkpoints.ts';
import { loadProducers, PERIOD_MS } from '../verify/producers.ts';
import { createWalk } from '../verify/walk-producers.ts';
import { catchUp, dropStuckWindow, isWindowFull } from './catch-up.ts';
import { extend } from './extend.ts';
import { askSolid, finalize, judgeableUpTo, ownSolidOf } from './finalize.ts';
import { certainTime, detectedTime, type FollowDeps, type Following, tipOf } from './following.ts';
import { keepProducers } from './identify-signer.ts';
import { createPace } from './pace.ts';
import { awaitsOperator, gatherQuorum } from './quorum.ts';
import { startCursor } from './start-cursor.ts';
import { toChainBlock, type WindowBlock } from './window.ts';

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
  return `no node of ${network} is available now: ${states.join('; ')}`;
}

/**
 * Records the verified blocks above the solid one that the database does not have yet, or not with all their transfers. After a
 * restart that waits until as much is verified as was examined before, so that no invoice loses a sighting that it still has.
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
 * Shows what the contract announced above the solid block, once all blocks up to the newest examined one are sighted, and whenever that
 * changed: also when a block that announced something was orphaned.
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

/** The log tells of progress this often. */
const LOG_MS = 10_000;
/** Requests a block are told over at least as many blocks as show what is usual. */
const MEASURED_BLOCKS = 20;

/** Watches how far a follower is and how fast: for metrics, the log, and the status that other processes read. */
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
    /** Blocks are read in ranges from now on, so that the first one tells a rate. */
    onBehind: (following: Following) => {
      const nowMs = performance.now();
      run ??= { startedMs: nowMs, from: following.base.number, loggedMs: nowMs };
    },
    /** A range was recorded while catching up. */
    onCatchUp: (following: Following) => {
      if (run === null) return;
      const nowMs = performance.now();
      head.blocks = 0;
      const blocksPerSecond = (following.base.number - run.from) / Math.max(0.001, (nowMs - run.startedMs) / 1000);
      const left = following.nodeSolid.number - following.base.number;
      const rounded = Math.round(blocksPerSecond * 10) / 10;
      // While blocks wait there is no rate to tell.
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
    /** The head was looked at, and so many blocks were new. */
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
  // A block whose infos came later says nothing about when blocks can be read.
  isLate ||= lateInfos.isNow;
  lateInfos.isNow = false;
  return { added, nextMs: pace.onBlock(tipOf(following).time, deps.now(), isLate) };
}

/**
 * Asks what is irreversible as soon as our headers prove something that a payer waits for, or a node that was away shows blocks again;
 * else seldom. `hasGrown`: a new block was read.
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
