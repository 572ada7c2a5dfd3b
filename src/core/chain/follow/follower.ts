import { AppError, retryableError } from '../../domain/errors.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { findReplacement, showPendingEvents } from '../../payments/contract-states.ts';
import { detectBlocks } from '../../payments/detect-blocks.ts';
import { createHeldBack, expireInvoices } from '../../payments/expire-invoices.ts';
import type { Watching } from '../../payments/watching.ts';
import {
  type ChainCursor,
  findCursor,
  findEarliestInvoiceTime,
  insertCursor,
  markLive,
} from '../../store/chain/cursor.ts';
import type { Lease } from '../../store/chain/leases.ts';
import { insertProducerSet, type ProducerSet } from '../../store/chain/producer-sets.ts';
import type { ChainStatus } from '../../store/chain/status.ts';
import {
  createAvoidance,
  describeNodes,
  type Node,
  ofDifferentOperators,
  orNull,
  recogniseNodes,
} from '../nodes/node.ts';
import { shippedCheckpoint } from '../proof/checkpoints.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import {
  isKnownSolid,
  type KnownProducers,
  loadProducers,
  nameProducers,
  PERIOD_MS,
  solidHeightBy,
} from '../verify/producers.ts';
import {
  type BlockMark,
  blamed,
  type Genesis,
  type ReadDeps,
  readAnyHeaderAt,
  readGenesis,
  readHeaderAt,
  readNewestSolid,
  type SolidHeader,
} from '../verify/read-block.ts';
import { createWalk, explainedBy, ofCheckpointChain, type Walk } from '../verify/walk-producers.ts';
import { createCatchUp } from './catch-up.ts';
import { CATCH_UP_BLOCKS, createFinalizer, createSolid, type Solid, spareAsks } from './finalize.ts';
import type { FollowDeps } from './following.ts';
import { createBatchPace, createHead } from './head.ts';
import { createSigners } from './signers.ts';
import { type ChainWindow, createQuorum, createWindow, toChainBlock, type WindowBlock } from './window.ts';

/** How long to wait before an unreachable node is tried again. */
const AWAY_MS = 250;
/** Recording a block with payments takes about 10 ms on an idle machine. */
const IN_TIME_MS = 40;
/** A node whose block can't be judged yet is asked last for this many blocks. */
const AVOID_BLOCKS = 2;

export type Follower = ReturnType<typeof createFollower>;

/**
 * Follows one network: verifies each block once, detects payments in it, and records it once it's irreversible. While catching up,
 * `onProgress` is called after each range of blocks.
 */
export function createFollower(
  deps: FollowDeps,
  onProgress: () => Promise<void>,
  checkpoint = shippedCheckpoint(deps.network),
) {
  const walk = checkpoint && createWalk(deps, checkpoint);
  let parts: Parts | null = null;
  let isGenesisKnown = false;
  const progress = createProgress(deps);
  const held = deps.held ?? createHeldBack();
  return {
    /** Clears the in-memory state, because another process may have recorded blocks in the meantime. */
    reset: () => {
      parts = null;
    },
    status: (): Omit<ChainStatus, 'blind' | 'nodes' | 'energyPrice'> | null =>
      parts === null ? null : progress.status(positionOf(parts)),
    /** Follows the chain for one round, and returns the pause until the next one. Throws errors from nodes and the database. */
    step: async (lease: Lease, isStopping: () => boolean): Promise<Stepped> => {
      if (!isGenesisKnown) isGenesisKnown = await recogniseNodes(deps);
      const available = await deps.pool.available();
      const nodes = parts === null ? available : parts.avoidance.sort(available);
      const [node] = nodes;
      if (node === undefined)
        throw retryableError('NO_NODE', `no ${deps.network} node is available now: ${describeNodes(deps.pool)}`);
      const watching: Watching = { ...deps, lease };
      const readAt = deps.now();
      const cursor = (await findCursor(deps.db, deps.network)) ?? (await startCursor(deps, nodes, walk));
      if (parts === null || parts.window.base().id !== cursor.solid.id) {
        parts = await startAt(deps, cursor, node, nodes);
      }
      const current = parts;
      const { window, solid, finalizer } = current;
      // Don't read any blocks after the contract's replacement. As long as the successor is unknown, the payments that it logs would look
      // like a node's fault.
      if ((await finalizer.judgeableUpTo()) < window.base().number) {
        await solid.askAhead(node);
        return { pauseMs: deps.blockMs, examined: agedAt(readAt, cursor) };
      }
      const turn: Turn = { deps, watching, parts: current, node, nodes };
      const isBehind = solid.reported() - window.tip().number > CATCH_UP_BLOCKS;
      const { pauseMs, hasChanged } = isBehind
        ? await comeCloser(turn, progress, isStopping, onProgress)
        : await followNewest(turn, progress);
      while (hasChanged && !isStopping() && (await expireInvoices(watching, window.detectedTime(), held)).isMoreLeft);
      // This is the age of the examined block, not of the node's newest block, because a node whose chain is shorter than ours shows
      // nothing new, even if its newest block is recent. Catching up can take a long time, so the age is measured at the start of the call.
      const after = hasChanged ? await findCursor(deps.db, deps.network) : null;
      return { pauseMs, examined: agedAt(readAt, after ?? cursor) };
    },
  };
}

/** `examined` is the newest examined block. */
type Stepped = { pauseMs: number; examined: { ageMs: number; time: UnixMs } };

function agedAt(now: UnixMs, { head: { time } }: ChainCursor): Stepped['examined'] {
  return { ageMs: now - time, time };
}

type Parts = Awaited<ReturnType<typeof startAt>>;

/**
 * Starts at the solid cursor, using only the state in the database. Each part owns its in-memory state, except for the blocks in the
 * window, which `quorum`, `catchUp` and `finalizer` also change. All of this state is a cache, which is dropped if the database contains
 * unexpected blocks.
 */
async function startAt(deps: FollowDeps, cursor: ChainCursor, node: Node, nodes: readonly Node[]) {
  const { db, network, blockMs, now } = deps;
  const replacedIn = await findReplacement(db, network);
  const initial = await loadProducers(db, network);
  const window = createWindow(cursor.solid, replacedIn === null ? Number.POSITIVE_INFINITY : cursor.solid.number);
  const avoidance = createAvoidance(AVOID_BLOCKS * blockMs);
  const pace = createBatchPace(blockMs, () => spareAsks(nodes, blockMs, now()));
  const signers = createSigners(deps, { window, avoidance, initial });
  const solid = createSolid(deps, { window, signers, pace });
  const quorum = createQuorum(deps, window);
  if (replacedIn !== null) deps.fees.noteReplaced(replacedIn);
  await signers.request(nodes);
  await solid.ask(node);
  return {
    window,
    avoidance,
    solid,
    quorum,
    head: createHead(deps, { window, signers, avoidance, pace }),
    catchUp: createCatchUp(deps, { window, signers, quorum, avoidance }),
    finalizer: createFinalizer(deps, { window, solid }),
    sighting: createSighting(deps, window),
    noteLive: createLiveNote(deps),
  };
}

type Turn = { deps: FollowDeps; watching: Watching; parts: Parts; node: Node; nodes: readonly Node[] };
type Turned = { pauseMs: number; hasChanged: boolean };
type Progress = ReturnType<typeof createProgress>;

/** Reads ranges of blocks that have been irreversible for a while. */
async function comeCloser(
  turn: Turn,
  progress: Progress,
  isStopping: () => boolean,
  onProgress: () => Promise<void>,
): Promise<Turned> {
  const { deps, watching, parts, node, nodes } = turn;
  const { window, solid, quorum, head, catchUp, finalizer, sighting } = parts;
  const place = () => [window.base().number, window.tip().number].join();
  deps.requestShare?.onBehind();
  progress.onBehind(positionOf(parts));
  const from = place();
  // This node may lack the block that another node has called irreversible.
  const furthest = solid.reported();
  const isOnOurChain = await solid.askOnly(node);
  const reaches = solid.reported();
  const isLeftBehind = reaches - window.tip().number <= CATCH_UP_BLOCKS && furthest - reaches > CATCH_UP_BLOCKS;
  const [next, ...others] = ofDifferentOperators(nodes.slice(1), deps.agreement);
  const isDispensable = others.length + 1 >= ofDifferentOperators(nodes, deps.agreement).length;
  // Without this check, Quittance would keep following this node, and confirm every payment as late as the node shows it. A node that has many more
  // blocks is still read, because the other one may not have them. So is a node whose operator is needed for an agreement.
  if (isOnOurChain && isLeftBehind && next !== undefined && isDispensable) {
    const reason = `its newest irreversible block is ${reaches}, but another node has reported block ${furthest}`;
    deps.pool.report(node, 'lagging', reason);
    parts.avoidance.avoid(node);
    await solid.ask(next);
    return { pauseMs: AWAY_MS, hasChanged: false };
  }
  const reading = catchUp.run({
    ...{ node, nodes, isStopping, last: solid.reported() },
    record: () => finalizer.record(watching),
    walkBack: () => head.extend(node, nodes),
    onProgress: async () => {
      deps.requestShare?.onBehind();
      // Reading up to `last` can take hours. Meanwhile the chain grows, so the lag would seem to fall even if Quittance never catches up.
      await solid.askAhead(node).catch(orNull);
      progress.onCatchUp(positionOf(parts));
      return onProgress();
    },
  });
  await reading.catch(async (error: unknown) => {
    // An operator can accept only the block after the newest examined one, so the blocks before the held one must be in the database.
    if (error instanceof AppError && /^(BLOCK_UNVERIFIABLE|NODES_DISAGREE)$/.test(error.code))
      await sighting.detect(watching);
    throw error;
  });
  await solid.ask(node);
  await solid.dropStuckWindow(node);
  // While operators don't agree, Quittance can only wait: briefly if an operator is unreachable, and longer if the answers differ.
  const waitMs = quorum.awaitsOperator() ? AWAY_MS : deps.blockMs;
  return { pauseMs: from === place() ? waitMs : 0, hasChanged: true };
}

/** Detects payments in the newest blocks, and records the blocks that have become irreversible. */
async function followNewest(turn: Turn, progress: Progress): Promise<Turned> {
  const { deps, watching, parts, node, nodes } = turn;
  const { window, solid, quorum, sighting } = parts;
  if (!window.isFull()) parts.catchUp.onHead();
  // Verified blocks are still recorded if the next block can't be read or verified.
  const head = await parts.head.follow(node, nodes).catch((error: unknown) => ({ error }));
  const hasGrown = 'added' in head && head.added > 0;
  await quorum.gather(nodes, { isNewestAsked: hasGrown });
  const detectedMs = await timed(() => sighting.detect(watching));
  await sighting.showContractEvents(watching);
  if ('isNewest' in head) await parts.noteLive(window.tip().number);
  await solid.askInTime(nodes, { isStuck: 'error' in head });
  let recorded = 0;
  const recordedMs = await timed(async () => {
    recorded = await parts.finalizer.record(watching);
  });
  if ('added' in head && head.added + recorded > 0) deps.requestShare?.onWork(detectedMs + recordedMs, IN_TIME_MS);
  await solid.dropStuckWindow(node);
  if ('error' in head) throw head.error;
  progress.onHead(positionOf(parts), head);
  return { pauseMs: head.nextMs, hasChanged: head.added + recorded > 0 };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** A local network may create blocks only on demand, so its newest block counts as current for this long. */
const LOCAL_LIVE_MS = 30_000;

/**
 * Returns a function that records once per block that the chain has no later block yet. It does so only once, because a stuck node can
 * claim this for hours, whereas a real chain keeps growing.
 */
function createLiveNote({ db, network, slotMs }: FollowDeps): (newest: number) => Promise<void> {
  let noted = { number: -1, ms: 0 };
  return async (newest) => {
    if (newest === noted.number && (slotMs !== null || performance.now() - noted.ms < LOCAL_LIVE_MS)) return;
    await markLive(db, network, slotMs === null);
    noted = { number: newest, ms: performance.now() };
  };
}

/** Stores the contents of the verified blocks above the solid one. */
function createSighting(deps: FollowDeps, window: ChainWindow) {
  /** The contract's events whose effects are already in the database, as text, or `null` while they are unknown. */
  let shownEvents: string | null = null;
  return {
    /**
     * Stores verified blocks that are completely or partly missing from the database. After a restart, nothing is stored until as many
     * blocks are verified as had been examined before. If it stored blocks earlier, invoices would lose sightings that are still valid.
     */
    detect: async (watching: Watching): Promise<void> => {
      try {
        await detect(watching, window);
      } catch (error) {
        // The newest blocks in the database aren't the expected ones, so write ours again.
        window.onSightingsLost();
        throw error;
      }
    },
    /**
     * Stores the contract's announcements, once all blocks up to the newest examined one are sighted. Repeats this whenever the
     * announcements change, including when a block that has one is orphaned.
     */
    showContractEvents: async (watching: Watching): Promise<void> => {
      const { blocks } = window;
      const isSighted =
        blocks.length > 0 && blocks.every(({ signer, detected }) => signer === null || detected !== 'nothing');
      if (!isSighted) return;
      const certain = blocks.filter(({ detected }) => detected !== 'nothing');
      const events = certain.flatMap(({ agreed }) => agreed?.logs.events ?? []);
      const shown = JSON.stringify(events.map(({ name, txId, logIndex }) => [name, txId, logIndex]));
      if (shown === shownEvents) return;
      await showPendingEvents({ ...watching, log: deps.log }, events);
      shownEvents = shown;
    },
  };
}

async function detect(watching: Watching, window: ChainWindow): Promise<void> {
  const firstUnsigned = window.blocks.findIndex(({ signer }) => signer === null);
  const signed = firstUnsigned < 0 ? window.blocks : window.blocks.slice(0, firstUnsigned);
  const first = signed.findIndex(isBehind);
  const blocks = signed.slice(first);
  const [lowest, newest] = [blocks[0], blocks.at(-1)];
  if (first < 0 || lowest === undefined || newest === undefined) return;
  const cursor = await findCursor(watching.db, watching.network);
  if (cursor !== null && newest.number < cursor.head.number) return;
  const open = blocks.filter(({ agreed }) => agreed === null);
  const heights = await detectBlocks(
    watching,
    lowest.number - 1,
    blocks.map(toChainBlock),
    window.certainTime(),
    open,
    window.orphaned.map(toChainBlock),
  );
  window.onSighted(blocks, heights);
}

function isBehind({ detected, agreed }: WindowBlock): boolean {
  return detected === 'nothing' || (detected === 'proven' && agreed !== null);
}

/** The heights that a follower has reached. `open` is the lowest irreversible block that is waiting for the operators' agreement. */
type Position = { head: number; ownSolid: number; nodeSolid: number; processed: number; open: number | null };

function positionOf({ window, solid }: { window: ChainWindow; solid: Solid }): Position {
  const [ownSolid, nodeSolid] = [solid.own(), solid.reported()];
  const limit = Math.min(ownSolid, nodeSolid);
  const open = window.blocks.find(({ agreed, number }) => agreed === null && number <= limit)?.number ?? null;
  return { head: window.tip().number, ownSolid, nodeSolid, processed: window.base().number, open };
}

const LOG_MS = 10_000;
/** Number of blocks over which requests per block are averaged. */
const MEASURED_BLOCKS = 20;

/** Tracks a follower's position and speed for metrics, the log, and the status that other processes read. */
export function createProgress({ network, metrics, log, pool }: FollowDeps) {
  let run: { startedMs: number; from: number; target: number; loggedMs: number } | null = null;
  let catchUp: ChainStatus['catchUp'] = null;
  const head = { requests: 0, blocks: 0, requestsPerBlock: null as number | null };
  const countRequests = () => pool.health().reduce((sum, { requests }) => sum + requests, 0);
  const setGauges = ({ head: newest, ownSolid, nodeSolid, processed }: Position) => {
    metrics.chainHeadNumber.set({ network }, newest);
    metrics.chainOwnSolidNumber.set({ network }, ownSolid);
    metrics.chainProcessedNumber.set({ network }, processed);
    metrics.chainLagBlocks.set({ network }, Math.max(0, nodeSolid - processed));
    metrics.chainCatchUpRate.set({ network }, catchUp?.blocksPerSecond ?? 0);
    metrics.chainCatchUpSeconds.set({ network }, catchUp?.secondsLeft ?? 0);
  };
  const progress = {
    /** Call this before reading blocks in ranges, so that a rate is known from the first range on. */
    onBehind: ({ processed, nodeSolid }: Position) => {
      const nowMs = performance.now();
      run ??= { startedMs: nowMs, from: processed, target: nodeSolid, loggedMs: nowMs };
    },
    /** Call this after a range has been recorded while catching up. */
    onCatchUp: (position: Position) => {
      if (run === null) return;
      const nowMs = performance.now();
      head.blocks = 0;
      const { processed, nodeSolid } = position;
      const seconds = Math.max(0.001, (nowMs - run.startedMs) / 1000);
      const blocksPerSecond = (processed - run.from) / seconds;
      const gainedPerSecond = blocksPerSecond - (nodeSolid - run.target) / seconds;
      const left = nodeSolid - processed;
      const rounded = Math.round(blocksPerSecond * 10) / 10;
      // No rate is known while blocks are waiting to be recorded.
      const isKnown = rounded > 0 && left > 0;
      catchUp = {
        blocksPerSecond: isKnown ? rounded : null,
        secondsLeft: isKnown && gainedPerSecond > 0 ? Math.ceil(left / gainedPerSecond) : null,
      };
      setGauges(position);
      if (nowMs - run.loggedMs < LOG_MS) return;
      run.loggedMs = nowMs;
      const rate = isKnown ? catchUp : {};
      log.info({ processed, left, ...rate }, 'catching up with the chain');
    },
    /**
     * Call this after reading the head; `added` is the number of new blocks. A catch-up continues until the last irreversible block is
     * recorded, because ranges end at that block, and only the blocks on top of it prove that it's irreversible. If there is no newer
     * block, the rest waits for something else, such as another operator.
     */
    onHead: (position: Position, { added, isNewest = false }: { added: number; isNewest?: boolean }) => {
      const { processed } = position;
      const left = Math.max(0, position.nodeSolid - processed);
      if (run !== null && left > 0 && !isNewest) return progress.onCatchUp(position);
      if (run !== null && left === 0) log.info({ processed }, 'caught up with the chain');
      if (run !== null && left > 0) log.info({ processed, left }, 'read up to the newest block');
      run = null;
      catchUp = null;
      if (head.blocks === 0) head.requests = countRequests();
      head.blocks += added;
      if (head.blocks > MEASURED_BLOCKS) {
        head.requestsPerBlock = Math.round(((countRequests() - head.requests) / head.blocks) * 100) / 100;
        head.blocks = 0;
      }
      setGauges(position);
    },
    status: ({ head: newest, ownSolid, nodeSolid, processed, open }: Position) => ({
      headNumber: newest,
      ownSolidNumber: ownSolid,
      nodeSolidNumber: nodeSolid,
      processedNumber: processed,
      catchUp,
      openBlock: open,
      requestsPerBlock: head.requestsPerBlock,
    }),
  };
  return progress;
}

/**
 * Chooses the first block to follow on a new network, and finds the network's producers. `agreement` operators must show the same block 0,
 * producers and starting block. If the release ships a checkpoint, a walk from it must lead to those producers. The producers matter
 * because a block is irreversible only if enough of them built on it. Nothing is stored until all of these conditions are met. Errors:
 * `NODES_DISAGREE`, `NO_NODE`, `BLOCK_UNVERIFIABLE`, `NODE_REFUSED`, `CHAIN_CONTRADICTION`.
 */
export async function startCursor(deps: FollowDeps, nodes: readonly Node[], walk: Walk | null): Promise<ChainCursor> {
  const { db, network, log, agreement } = deps;
  const { genesis, members: found } = await findNetwork(deps, nodes);
  const members = walk === null ? found : await ofCheckpointChain(deps, found, walk.checkpoint);
  const asked = ofDifferentOperators(members, agreement);
  const [first, ...others] = asked;
  if (first === undefined) throw new Error('no node to start from');
  const newest = await readNewestSolid(deps, first);
  const set = await nameProducers(deps, members, { clock: deps.now(), reason: 'first' });
  const producers: KnownProducers = { newest: set, earlier: [] };
  if (!isKnownSolid(producers, newest)) {
    const reason = `${first.origin} reports block ${newest.number} (${newest.id}) as irreversible, but none of the producers signed it`;
    deps.pool.report(first, 'unverifiable', reason);
    throw retryableError('BLOCK_UNVERIFIABLE', reason);
  }
  const counted = walk === null ? producers : await walked(deps, walk, members, { newest, set });
  const built = await findBuiltUpon(deps, first, { genesis, newest }, counted);
  await assertShown(deps, producers, { first, block: built, others, isProven: true });
  const start = await findStartingBlock(deps, first, { genesis, built }, await findEarliestInvoiceTime(db, network));
  if (start !== built) await assertShown(deps, producers, { first, block: start, others, isProven: false });
  await db.transaction(async (tx) => {
    // If two processes start a network concurrently, only one inserts the cursor, and only its producers are stored.
    if (await insertCursor(tx, network, start, genesis.id)) await insertProducerSet(tx, network, set);
  });
  log.info(
    { block: start.number, nodes: asked.map(({ origin }) => origin) },
    'following the network from its newest irreversible block',
  );
  const inserted = await findCursor(db, network);
  if (inserted === null) throw new Error(`the ${network} cursor was not stored`);
  return inserted;
}

/**
 * Returns the producers that the checkpoint leads to. If they don't include enough of the producers that the nodes report, the nodes are
 * paused.
 */
async function walked(
  deps: FollowDeps,
  walk: Walk,
  nodes: readonly Node[],
  { newest, set }: { newest: BlockMark; set: ProducerSet },
): Promise<KnownProducers> {
  const { number, time } = walk.checkpoint;
  if (newest.number < number) {
    const seen = `the nodes' newest irreversible block is ${newest.number} from ${toIso(newest.time)}, but this release's checkpoint is the later block ${number}. Use nodes that have caught up with ${deps.network}. If these nodes have caught up, the checkpoint is wrong: install a different release`;
    throw retryableError('NO_NODE', seen);
  }
  // A chain that stopped hours ago doesn't show who is producing blocks now.
  if (deps.now() - newest.time > PERIOD_MS) {
    const seen = `the nodes are at block ${newest.number} from ${toIso(newest.time)}: the first start waits until they have caught up with the current chain`;
    throw retryableError('NO_NODE', seen);
  }
  const producers = await walk.to(nodes, newest);
  const { count, isEnough } = explainedBy(producers, set.producers);
  if (isEnough) return { newest: { ...set, producers }, earlier: [] };
  const reason = `only ${count} of the ${set.producers.length} producers that ${set.nodes.join(' and ')} name are among the ${producers.length} producers known from the checkpoint of ${toIso(time)}`;
  for (const node of nodes) if (set.nodes.includes(node.origin)) deps.pool.report(node, 'disagrees', reason);
  const advice =
    'Configure nodes from other operators. If those nodes name the same producers, the checkpoint is wrong: install a different release';
  throw retryableError('NODES_DISAGREE', `${reason}. ${advice}`);
}

/**
 * Determines which network is meant: the one whose nodes belong to the most operators. At least `agreement` operators must run nodes on
 * that network. Nodes on other networks are left out, whatever their position in the list.
 */
async function findNetwork(deps: FollowDeps, nodes: readonly Node[]): Promise<{ genesis: Genesis; members: Node[] }> {
  const { agreement, pool } = deps;
  const answers = await Promise.all(
    nodes.map(async (node) => ({ node, genesis: await readGenesis(deps, node).catch(orNull) })),
  );
  const known = answers.flatMap(({ node, genesis }) => (genesis === null ? [] : { node, genesis }));
  const networks = [...new Set(known.map(({ genesis }) => genesis.id))]
    .map((id) => known.filter(({ genesis }) => genesis.id === id))
    .map((group) => ({
      group,
      size: ofDifferentOperators(
        group.map(({ node }) => node),
        nodes.length,
      ).length,
    }))
    .sort((left, right) => right.size - left.size);
  const [largest, next] = networks;
  const [example] = largest?.group ?? [];
  if (
    largest === undefined ||
    example === undefined ||
    (known.length === largest.group.length && largest.size < agreement)
  ) {
    const seen = `the first start needs nodes from ${agreement} operators, but only ${largest?.size ?? 0} respond`;
    throw retryableError('NO_NODE', seen);
  }
  const [other] = next?.group ?? [];
  if (other !== undefined && (largest.size < agreement || largest.size === next?.size)) {
    throw disagree(example.genesis, other.genesis, other.node);
  }
  for (const { node, genesis } of known) {
    if (genesis.id === example.genesis.id) continue;
    pool.report(node, 'wrong-network', `its block 0 is ${genesis.id}, but most operators return ${example.genesis.id}`);
  }
  return { genesis: example.genesis, members: largest.group.map(({ node }) => node) };
}

/**
 * Throws unless the other nodes show the same block. If a node's block differs from a proven one, or none of the producers signed it, the
 * node is paused and another one is asked.
 */
async function assertShown(
  deps: FollowDeps,
  producers: KnownProducers,
  { first, block, others, isProven }: { first: Node; block: SolidHeader; others: readonly Node[]; isProven: boolean },
): Promise<void> {
  if (block.producer === null) return;
  for (const node of others) {
    const theirs = await readHeaderAt(deps, node, block.number);
    if (theirs.id === block.id) continue;
    const error = disagree(block, theirs, node);
    if (isProven || !isKnownSolid(producers, theirs)) deps.pool.report(node, 'unverifiable', error.message);
    if (!isKnownSolid(producers, block)) deps.pool.report(first, 'unverifiable', error.message);
    throw error;
  }
}

function disagree(ours: BlockMark, theirs: BlockMark, node: Node): AppError {
  return retryableError('NODES_DISAGREE', `block ${ours.number} is ${ours.id}, but ${theirs.id} on ${node.origin}`);
}

/** The clock of the server that created the first invoice may be this far ahead of the chain. This is much more than real clock drift. */
const CLOCK_MARGIN_MS = 10 * 60_000;
/** The first step back from the irreversible block when searching for an old enough block: a little more than the margin. */
const FIRST_STEP_BLOCKS = 250;
/** Maximum number of headers to read in order to find the producers that built on the starting block: four rounds of 27 producers. */
const MAX_BUILT_BLOCKS = 108;

/**
 * Returns the first block to follow on a new network. Normally it's `built`, which is irreversible. If invoices were created while no node
 * was answering, it's the newest block that is certainly older than the first invoice, so that no payment is missed. Costs two requests for
 * each doubling of the distance, and eight more. Errors: as for `readHeaderAt`.
 */
async function findStartingBlock(
  deps: ReadDeps,
  node: Node,
  { genesis, built }: { genesis: Genesis; built: SolidHeader },
  earliestInvoice: UnixMs | null,
): Promise<SolidHeader> {
  if (earliestInvoice === null) return built;
  const start = earliestInvoice - CLOCK_MARGIN_MS;
  if (built.time < start) return built;
  let low: SolidHeader = genesis;
  let high = built;
  // Don't go back further than necessary, because not every node has all blocks since block 0.
  for (let step = FIRST_STEP_BLOCKS; high.number - step > 0; step *= 2) {
    const before = await readHeaderAt(deps, node, high.number - step);
    if (before.time < start) {
      low = before;
      break;
    }
    high = before;
  }
  while (high.number - low.number > 1) {
    const middle = await readHeaderAt(deps, node, Math.floor((low.number + high.number) / 2));
    if (middle.time < start) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Returns the newest block up to `newest` that is irreversible, judging by the producers that built on it up to `newest`. A node may call a
 * block irreversible and then replace it a moment later, and a ledger that starts at such a block would never match the chain. Costs one
 * request per block: 18 if all 27 producers take their turns. Errors: as for `readAnyHeaderAt`, and `BLOCK_UNVERIFIABLE` if the headers
 * don't form a chain or too few known producers built within the limit.
 */
async function findBuiltUpon(
  deps: ReadDeps,
  node: Node,
  { genesis, newest }: { genesis: Genesis; newest: SolidHeader },
  producers: KnownProducers,
): Promise<SolidHeader> {
  const built: ProvenHeader[] = [];
  for (let block = newest; built.length < MAX_BUILT_BLOCKS; ) {
    if (block.producer === null) return block;
    const header = block;
    built.unshift(header);
    if (solidHeightBy(producers, built) === header.number) return header;
    const parent = header.number === 1 ? genesis : await readAnyHeaderAt(deps, node, header.number - 1);
    if (parent.id !== header.parentId) {
      const seen = `block ${header.number} (${header.id}) has parent ${header.parentId}, not ${parent.id}`;
      throw blamed(deps, node, retryableError('BLOCK_UNVERIFIABLE', seen));
    }
    block = parent;
  }
  const seen = `too few of its producers signed the ${built.length} blocks up to ${newest.number} (${newest.id})`;
  throw blamed(deps, node, retryableError('BLOCK_UNVERIFIABLE', seen));
}
