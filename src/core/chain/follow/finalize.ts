import type { SolidBlock } from '../../domain/chain-block.ts';
import { retryableError } from '../../domain/errors.ts';
import { DAY_MS, HOUR_MS, type UnixMs } from '../../domain/time.ts';
import { applyContractEvents } from '../../payments/contract-states.ts';
import { applySolidBlocks } from '../../payments/record-transfers.ts';
import type { Watching } from '../../payments/watching.ts';
import { findPassedBlock } from '../../store/chain/passed-blocks.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import { isKnownSolid, solidHeightBy } from '../verify/producers.ts';
import { readNewestSolid, type SolidHeader } from '../verify/read-block.ts';
import type { FollowDeps } from './following.ts';
import type { Pace } from './head.ts';
import type { Signers } from './signers.ts';
import { type ChainWindow, LAG_BLOCKS, toChainBlock, type WindowBlock } from './window.ts';

/**
 * A node's claim or the window is stuck if it isn't confirmed within this many blocks. Normally 19 different producers confirm it within a
 * minute.
 */
const STUCK_BLOCKS = 200;
/** If more blocks than this wait to be recorded, our own count has stalled: the producers may have changed, so the nodes may know more. */
const STALLED_BLOCKS = 60;
/** If the watcher is more than this many blocks behind the irreversible chain, it reads blocks in ranges. */
export const CATCH_UP_BLOCKS = 20;
/**
 * A watcher that is behind asks after this many block times how far the chain has grown. If it reads single blocks faster than that, it asks
 * after this many blocks, because a range of blocks needs far fewer requests.
 */
const GROWN_BLOCKS = 4;

export type Solid = ReturnType<typeof createSolid>;

/** Knows up to which height the chain is irreversible, both by our own count of producers and according to the nodes. */
export function createSolid(
  deps: FollowDeps,
  { window, signers, pace }: { window: ChainWindow; signers: Signers; pace: Pace },
) {
  let reported = window.base().number;
  /** The lowest height that a node has called irreversible but our own count hasn't confirmed yet, or `null` if there's none. */
  let claim: number | null = null;
  /** This number increases when the asked node is behind, so that the next request goes to another node. */
  let asker = 0;
  /** When a node was last asked (monotonic), and the newest verified height at that time. */
  let asked = { ms: Number.NEGATIVE_INFINITY, tip: 0 };

  /**
   * Returns the height up to which our own verified headers prove that the chain is irreversible. It's never below the newest recorded
   * block.
   */
  const own = (): number => {
    const producers = signers.known();
    const base = window.base().number;
    if (producers === null) return base;
    const signed = window.blocks.flatMap(({ number, producer, signer }) =>
      signer === null ? [] : { number, producer, signer },
    );
    return Math.max(base, solidHeightBy(producers, signed) ?? 0);
  };
  const isAskedLately = () => performance.now() - asked.ms < GROWN_BLOCKS * deps.blockMs;
  const readNewest = (node: Node): Promise<SolidHeader> => {
    asked = { ms: performance.now(), tip: window.tip().number };
    return readNewestSolid(deps, node);
  };
  const onReported = ({ number }: SolidHeader) => {
    deps.metrics.chainSolidNumber.set({ network: deps.network }, number);
    reported = Math.max(reported, number);
  };
  /** Returns our block at this height if it isn't this one. */
  const otherThan = ({ number, id }: SolidHeader) =>
    window.blocks.find((block) => block.number === number && block.id !== id);
  /**
   * Asks the node for its newest irreversible block, which must be on our chain. Returns false if it isn't, and reports the node. If the
   * watcher is behind, it may not know the newest producers yet, so an unknown one is not the node's fault. Costs one request.
   */
  const ask = async (node: Node, { isBehind = false } = {}): Promise<boolean> => {
    const solid = await readNewest(node);
    if (!isKnownSolid(signers.known(), solid)) {
      const reason = `its irreversible block ${solid.number} (${solid.id}) is not signed by any known producer`;
      if (!isBehind) deps.pool.report(node, 'unverifiable', reason);
      return false;
    }
    const ours = otherThan(solid);
    if (ours !== undefined) {
      // Either our window is an orphaned branch, or the node is wrong. Quittance reads the window's blocks again, and later blocks show
      // which one is true.
      window.replaceFrom(window.blocks.indexOf(ours));
      deps.pool.report(
        node,
        'contradicts',
        `its irreversible block ${solid.number} is ${solid.id}, but the ledger has ${ours.id}`,
      );
      return false;
    }
    onReported(solid);
    return true;
  };
  return {
    own,
    /** Returns the height that nodes have reported. */
    reported: () => reported,
    ask,
    /** Like `ask`, but forgets what other nodes have reported, because this node may lack those blocks. A failed request changes nothing. */
    askOnly: async (node: Node): Promise<boolean> => {
      const before = reported;
      reported = window.base().number;
      return ask(node).catch((error: unknown) => {
        reported = before;
        throw error;
      });
    },
    /**
     * Raises the reported height if the node has a later irreversible block. Blames no node and drops no block, so it may be called while
     * blocks are being read. Does nothing if a node was asked a moment ago.
     */
    askAhead: async (node: Node): Promise<void> => {
      if (isAskedLately()) return;
      const solid = await readNewest(node);
      if (isKnownSolid(signers.known(), solid) && otherThan(solid) === undefined) onReported(solid);
    },
    /**
     * Asks as soon as our headers prove that a block with a payer's payment is irreversible. Otherwise it asks rarely, but more often while
     * the newest block is old or the next one can't be read (`isStuck`). Once a node reports a backlog, Quittance reads it in ranges.
     */
    askInTime: async (nodes: readonly Node[], { isStuck }: { isStuck: boolean }) => {
      const { blocks } = window;
      const proven = own();
      const isWaiting = blocks.some(({ number, hasSighting }) => hasSighting && number > reported && number <= proven);
      const hasStalled = blocks.length > STALLED_BLOCKS;
      const isBehind = isStuck || deps.now() - window.tip().time > CATCH_UP_BLOCKS * deps.blockMs;
      const isAhead = isBehind && !(isAskedLately() && window.tip().number - asked.tip < GROWN_BLOCKS);
      if (!isAhead && !((proven > reported || hasStalled) && pace.maySpend(isWaiting, deps.now()))) return;
      // A node that turned out to be behind isn't asked again immediately.
      const askers = solidAskers(nodes);
      const chosen = askers[asker % askers.length];
      if (chosen === undefined) return;
      // After a failure, the next request goes to the next node.
      await ask(chosen, { isBehind: isAhead }).catch(orNull);
      if (reported < proven || hasStalled || isBehind) asker += 1;
    },
    /**
     * Drops a window that a node calls irreversible although our own count can't confirm it: no known key signed its blocks, or too few
     * known producers have built on it. Either the window belongs to another chain, or the producers have changed. The next attempt asks
     * another node.
     */
    dropStuckWindow: async (node: Node) => {
      const { blocks } = window;
      const [first, proven, tip] = [blocks[0], own(), window.tip().number];
      if (claim !== null && proven >= claim) claim = null;
      if (claim === null && proven < reported) claim = reported;
      const newest = blocks.slice(-STUCK_BLOCKS);
      const signed = newest.filter(({ signer }) => signer !== null).length;
      const isForeign = newest.length === STUCK_BLOCKS && signed < STUCK_BLOCKS / 2;
      const isUnfounded = claim !== null && tip >= claim + STUCK_BLOCKS / 2;
      if (first === undefined || !(isForeign || isUnfounded)) return;
      const detail = isForeign
        ? `${node.origin} returned ${STUCK_BLOCKS} blocks up to ${tip}, but known producers signed only ${signed} of them`
        : `${node.origin} reports block ${claim} as irreversible, but too few of the known producers built on it up to block ${tip}`;
      deps.pool.report(node, 'unverifiable', detail);
      await deps.alarms.raise('not-solid', String(first.number), detail);
      window.drop();
      claim = null;
      signers.expire();
    },
  };
}

/**
 * The preferred node comes after the other operators, because it's already serving the blocks. Further nodes of the same operators come
 * last, because an operator's nodes often share a fault.
 */
function solidAskers<Named extends Pick<Node, 'operator'>>(nodes: readonly Named[]): Named[] {
  const [first, ...others] = ofDifferentOperators(nodes, nodes.length);
  if (first === undefined) return [];
  return [...others, first, ...nodes.filter((node) => node !== first && !others.includes(node))];
}

/**
 * How many requests per block may ask for the newest irreversible block if payers are waiting all the time. A node's daily limit must last
 * all day, and blocks have priority: each costs two requests, plus a share for misses, balances and lookups.
 */
const MOST_ASKS = 1;
const LEAST_ASKS = 0.3;
const BLOCK_REQUESTS = 2.4;

/**
 * Returns how many requests per block may be spent on asking for the newest irreversible block, so that the first asked node's daily limit
 * lasts until the end of the UTC day.
 */
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

const MAX_NAMED = 20;
/**
 * Maximum number of blocks per transaction while catching up. This number keeps memory use and lock times low, and still needs few commits.
 */
export const BATCH_BLOCKS = 60;
/**
 * Limits on blocks whose header proves nothing, so that only the operators' agreement confirms them: in a row, and per hour of chain time.
 */
const MAX_UNPROVEN_IN_A_ROW = 60;
const MAX_UNPROVEN_IN_AN_HOUR = 240;

/**
 * Counts the blocks that were recorded without proof from a header since the follower last loaded its state from the database. `inARow` is
 * the number of such blocks in a row up to now, and `times` contains the times of the latest ones.
 */
type Unproven = { inARow: number; times: UnixMs[] };

/** Records irreversible blocks, each once. */
export function createFinalizer(
  deps: FollowDeps,
  { window, solid }: { window: ChainWindow; solid: Pick<Solid, 'own' | 'reported'> },
) {
  const { network, metrics, fees, agreement, alarms } = deps;
  let unproven: Unproven = { inARow: 0, times: [] };

  /**
   * Returns the height up to which Quittance can judge blocks. Once Tether has replaced the contract, only its successor logs the payments
   * that other contracts make. The operators' agreed event names the successor; after a restart the nodes are asked for it, because the
   * ledger doesn't store it. While the successor is unknown, Quittance holds all later blocks, and raises an alarm as soon as one of them
   * is irreversible.
   */
  const judgeableUpTo = async (): Promise<number> => {
    const unanswered = await fees.unansweredFrom(deps);
    // Waiting doesn't help if there's only one operator, because a successor that only one operator names is never trusted.
    const held = agreement > 1 ? unanswered - 1 : Number.POSITIVE_INFINITY;
    const { number: recorded } = window.base();
    if (held <= recorded && recorded < solid.reported()) {
      const detail =
        `block ${recorded + 1} and all later blocks are on hold: Tether replaced the USDT contract (Deprecate, block ${unanswered}), and Quittance cannot see ` +
        `payments until ${agreement} operators name the new contract. Responses: ${fees.answers()}. Meanwhile, no invoice becomes PAID ` +
        'or expires. Configure each node to answer constant calls (triggerconstantcontract), or add a node from another operator. Quittance checks again every minute.';
      await alarms.raise('unverifiable-block', '', detail);
    }
    return held;
  };
  /** Like `judgeableUpTo`, but counts only blocks that were read with the current successor. Quittance reads all other blocks again. */
  const judgedUpTo = async (): Promise<number> => {
    for (const { number, agreed } of window.blocks) {
      if (agreed === null) break;
      for (const { name, account } of agreed.logs.events)
        if (name === 'Deprecate') fees.noteReplaced(number, agreement > 1 ? account : null);
    }
    const held = await judgeableUpTo();
    for (const [index, { number, agreed }] of window.blocks.entries()) {
      if (agreed?.logs.successor === fees.successorAt(number)) continue;
      if (agreed !== null) window.replaceFrom(index);
      return Math.min(held, number - 1);
    }
    return held;
  };
  return {
    judgeableUpTo,
    /**
     * Records blocks in order, up to the first that isn't ready. A block is ready if both our own headers and the node say that it's
     * irreversible, and enough operators agree on its logs. Returns the number of recorded blocks.
     */
    record: async (watching: Watching): Promise<number> => {
      if (!window.isLinked()) {
        // Only a bug can cause this. Record nothing from such a window.
        window.drop();
        throw retryableError(
          'CHAIN_CONTRADICTION',
          'the verified blocks were not linked, so Quittance reads them again',
        );
      }
      const irreversible = Math.min(solid.own(), solid.reported());
      const judged = await judgedUpTo();
      window.onJudged(judged);
      const limit = Math.min(irreversible, judged);
      const firstOpen = window.blocks.findIndex(({ number, agreed }) => number > limit || agreed === null);
      const complete = firstOpen < 0 ? window.blocks : window.blocks.slice(0, firstOpen);
      const ready = await countAllowed(deps, complete, unproven);
      for (let done = 0; done < ready; done += BATCH_BLOCKS) {
        const blocks = window.blocks.slice(0, Math.min(BATCH_BLOCKS, ready - done));
        // Do this before the blocks are recorded, because recorded blocks are never examined again. After a crash in between, the same
        // alarms are simply raised again.
        await applyContractEvents(
          { ...watching, log: deps.log },
          blocks.map(({ number, agreed }) => ({ number, events: agreed?.logs.events ?? [] })),
        );
        for (const block of blocks) await logUnproven(deps, block);
        const counts = await applySolidBlocks(watching, blocks.map(toSolidBlock));
        unproven = blocks.reduce(countUnproven, unproven);
        for (const [kind, count] of Object.entries(counts)) metrics.transfers.inc({ network, kind }, count);
        window.onRecorded(blocks.length);
      }
      if (ready > 0) {
        await alarms.resolve('unverifiable-block');
        await alarms.resolve('not-solid');
        // The newest blocks may still be open, because another operator's node may lag a little.
        const lowestOpen = window.blocks.find(({ agreed }) => agreed === null)?.number ?? Number.POSITIVE_INFINITY;
        if (lowestOpen > window.tip().number - LAG_BLOCKS) await alarms.resolve('nodes-disagree');
      }
      return ready;
    },
  };
}

/**
 * Returns how many of the blocks, the lowest first, may be recorded. Stops at an unproven block that exceeds the limits, because colluding
 * operators could invent payments in blocks that no one can prove. A block that the operator approved resets the count.
 */
async function countAllowed(
  { db, network, alarms }: FollowDeps,
  blocks: readonly WindowBlock[],
  before: Unproven,
): Promise<number> {
  let counts = before;
  for (const [index, block] of blocks.entries()) {
    const { number, id, time, digest } = block;
    const inAnHour = counts.times.filter((each) => each > time - HOUR_MS).length;
    const isTooMuch = counts.inARow >= MAX_UNPROVEN_IN_A_ROW || inAnHour >= MAX_UNPROVEN_IN_AN_HOUR;
    if (!block.isProven && isTooMuch) {
      block.isPassed = (await findPassedBlock(db, network, number))?.digest === digest;
      if (!block.isPassed) {
        const detail =
          `block ${number} (${id}) is on hold, because no node can prove it. Unproven blocks before it: ${counts.inARow} in a row, and ${inAnHour} within an hour. ` +
          "Set a node's gRPC port (#grpc=grpc://host:50051), which proves such blocks, or check the block against another source and accept " +
          `it: quittance chain pass --network ${network} --block ${number} --reason "…"`;
        await alarms.raise('unverifiable-block', '', detail);
        return index;
      }
    }
    counts = countUnproven(counts, block);
  }
  return blocks.length;
}

function countUnproven({ inARow, times }: Unproven, block: WindowBlock): Unproven {
  if (block.isProven) return { inARow: 0, times };
  if (block.isPassed) return { inARow: 1, times: [block.time] };
  return { inARow: inARow + 1, times: [...times, block.time].slice(-MAX_UNPROVEN_IN_AN_HOUR) };
}

function toSolidBlock(block: WindowBlock): SolidBlock {
  if (block.agreed === null) throw new Error(`operators do not agree on block ${block.number}`);
  return { ...toChainBlock(block), evidence: block.agreed.evidence };
}

/** Logs a block whose contents its header doesn't prove, so that the operator knows which payments rely on nodes alone. */
async function logUnproven(deps: FollowDeps, { number, id, isProven, agreed }: WindowBlock): Promise<void> {
  if (isProven || agreed === null) return;
  const { transfers } = agreed.logs;
  const shown = [...new Set(transfers.map(({ txId }) => txId))];
  const named = shown.length === 0 ? 'none' : shown.slice(0, MAX_NAMED).join(', ');
  const rest = shown.length > MAX_NAMED ? ` and ${shown.length - MAX_NAMED} more` : '';
  const detail =
    `block ${number} (${id}) contains bytes that no node returned, so its transactions are not proven: Quittance relies on ` +
    `${agreed.evidence.nodes.join(' and ')}. The block's USDT transfers: ${named}${rest}. ` +
    'To prove such blocks, connect a node over gRPC.';
  deps.log.warn({ block: number, transactions: shown.slice(0, MAX_NAMED) }, 'a block was accepted without proof');
  // All unproven blocks share one alarm, because a stranger can cause one every three seconds.
  await deps.alarms.raise('unproven-block', '', detail);
}
