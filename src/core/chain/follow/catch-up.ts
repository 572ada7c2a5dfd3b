import { setTimeout as delay } from 'node:timers/promises';
import { type AppError, retryableError } from '../../domain/errors.ts';
import { type Avoidance, type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { ExaminedBlock, ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy } from '../verify/producers.ts';
import {
  LONG_RANGE_BLOCKS,
  RANGE_BLOCKS,
  type ReadBlock,
  readBlock,
  readBlocks,
  withLogs,
} from '../verify/read-block.ts';
import { readByLogs } from '../verify/read-by-logs.ts';
import { BATCH_BLOCKS } from './finalize.ts';
import type { FollowDeps } from './following.ts';
import { assertLater } from './head.ts';
import type { Signers } from './signers.ts';
import { type ChainWindow, othersFor, type Quorum, type WindowBlock, withQuorum } from './window.ts';

type CatchUpOptions = {
  /** The preferred node, which is the first one in `nodes`. */
  node: Node;
  nodes: readonly Node[];
  last: number;
  /** Records the blocks that are ready, and returns how many. */
  record(): Promise<number>;
  /**
   * Reads the block after the newest verified one from the preferred node. If the verified blocks are on an orphaned branch, also reads the
   * blocks that replace them. Returns how many blocks are new, which is 0 if the node has no next block.
   */
  walkBack(): Promise<number>;
  isStopping(): boolean;
  /** The catch-up calls this after each transaction. */
  onProgress(): Promise<void>;
};

type CatchUpParts = { window: ChainWindow; signers: Signers; quorum: Quorum; avoidance: Avoidance };

/** Reads the irreversible blocks that the ledger lacks, in ranges, from several nodes concurrently. */
export function createCatchUp(deps: FollowDeps, { window, signers, quorum, avoidance }: CatchUpParts) {
  const failures = createFailures();

  /**
   * Returns the next range. A range from another node is used only if its blocks link to our tip and known producers signed them. Otherwise
   * one dishonest node could make Quittance walk back again and again.
   */
  const nextLinked = async (ahead: ReadAhead, node: Node): Promise<AheadRange | null> => {
    const range = await ahead.next();
    if (range === null || range.source === node) return range;
    const { blocks, source } = range;
    const isLinked = window.couldAppend(blocks.map(({ block }) => block));
    if (!isLinked) ahead.dismiss(source);
    const producers = signers.known();
    const isSigned = blocks.every(({ read }) => producers !== null && isSignedBy(producers, read.block));
    return isLinked && isSigned ? range : ahead.again(range);
  };
  /** Checks a range's blocks and adds them to the window. */
  const take = async ({ source, blocks }: AheadRange, nodes: readonly Node[]): Promise<void> => {
    assertLater(
      deps,
      window.tip(),
      blocks.map(({ read }) => read),
    );
    // These calls are sequential on purpose: the first block by an unknown producer makes Quittance ask the nodes, and the following blocks
    // reuse the answer.
    for (const { read, block } of blocks) block.signer = await signers.identify(read, nodes);
    for (const { block } of blocks) {
      if (window.append(block)) continue;
      const tip = window.tip();
      avoidance.avoid(source);
      throw retryableError(
        'NODE_REFUSED',
        `block ${block.number} (${block.id}) from ${block.time} has parent ${block.parentId}, but block ${tip.number} is ${tip.id} from ${tip.time}`,
      );
    }
  };
  const lacksNext = (node: Node, last: number): AppError => {
    const reason = `${node.origin} reports block ${last} as irreversible, but does not return block ${window.tip().number + 1} with its logs`;
    deps.pool.report(node, 'incomplete', reason);
    avoidance.avoid(node);
    return retryableError('NODE_REFUSED', reason);
  };
  return {
    /** Call this while following the head, so that every node may provide ranges again. */
    onHead: failures.clear,
    /**
     * Replays the irreversible blocks after the newest verified one, up to `last`, in order and without gaps, and requests further ranges
     * in advance. Quittance records all ranges that have arrived in one transaction, because several ranges take no longer than one.
     * Returns at `last`, when the window is full, or when `isStopping` returns true. Throws if a block can't be read or verified. The next
     * call resumes from there.
     */
    run: async ({ node, nodes, last, record, walkBack, isStopping, onProgress }: CatchUpOptions): Promise<void> => {
      const range = { node, nodes, first: window.tip().number + 1, last };
      const ahead = createReadAhead(deps, { failures, avoidance }, range);
      const pending: AheadRange[] = [];
      const recordPending = async () => {
        const sources = new Set(pending.splice(0).map(({ source }) => source));
        await quorum.gatherOpen();
        if ((await record()) > 0) for (const source of sources) deps.pool.praise(source);
        await onProgress();
      };
      try {
        while (!isStopping() && !window.isFull() && !quorum.awaitsOperator()) {
          const next = await nextLinked(ahead, node);
          if (next === null) break;
          if (next.blocks[0]?.block.parentId !== window.tip().id) {
            // The verified blocks are on an orphaned branch, so walk back to the fork, one block at a time.
            await recordPending();
            const added = await walkBack();
            // Otherwise there's no fork, so the node itself doesn't give what it called irreversible. Ask another one.
            if (added === 0) throw lacksNext(node, last);
            if (added === 1) failures.countFailure(node);
            return;
          }
          await take(next, nodes).catch((error: unknown) => {
            if (next.source !== node) ahead.dismiss(next.source);
            throw error;
          });
          if (next.source === node) failures.forgive(node);
          pending.push(next);
          const count = pending.reduce((sum, { blocks }) => sum + blocks.length, 0);
          if (count >= BATCH_BLOCKS / 2 || !ahead.isNextThere()) await recordPending();
        }
        await recordPending();
      } catch (error) {
        // Record the blocks before the one that can't be read or judged.
        if (pending.length > 0) await recordPending();
        throw error;
      } finally {
        ahead.stop();
      }
    },
  };
}

/** A block with its logs, as shown by its node and any other operators that already have the block. `block.signer` isn't known yet. */
type AheadBlock = { read: { node: Node; block: ProvenHeader }; block: WindowBlock };
type AheadRange = { source: Node; blocks: AheadBlock[] };

type ReadAhead = ReturnType<typeof createReadAhead>;

/** Maximum number of blocks that are requested or waiting for earlier blocks, across all nodes. The last range may exceed this number. */
const MAX_AHEAD = 64;
/** After this many consecutive failed ranges, Quittance asks the node for single blocks. */
const MAX_RANGE_FAILURES = 3;
const PARALLEL_BLOCKS = 4;
/**
 * Another node may take this many times as long as the preferred node, and at least `MIN_LATE_MS`. After this time, Quittance requests the
 * range from the preferred node instead.
 */
const MAX_TIMES_LATER = 4;
const MIN_LATE_MS = 1000;
/** How long a range from the preferred node is assumed to take until it has been measured. */
const USUAL_MS = 4000;

type Range = { first: number; last: number; source: Node; isThere: boolean; blocks: Promise<AheadBlock[]> };

/**
 * Reads the blocks from `first` to `last` in ranges, from all nodes concurrently. The number of concurrent ranges adapts to each node's
 * latency. Each block is verified on its own; the caller checks that the blocks form a chain.
 */
function createReadAhead(
  deps: FollowDeps,
  { failures, avoidance }: { failures: Failures; avoidance: Avoidance },
  { node, nodes, first, last }: { node: Node; nodes: readonly Node[]; first: number; last: number },
) {
  const ranges: Range[] = [];
  let from = first;
  let hasFailed = false;
  let isStopped = false;
  const { failuresOf, countFailure, judge } = failures;
  const sources = createRangeSources(deps, avoidance, { node, nodes, failuresOf });
  const read = async (source: Node, begin: number, end: number): Promise<AheadBlock[]> => {
    const complete = (block: ReadBlock) => withOthers(deps, nodes, block);
    const readSingly = () => readOneByOne(deps, source, begin, end, complete);
    if (failuresOf(source) >= MAX_RANGE_FAILURES || !source.isOpenFor('ranges')) return readSingly();
    const blocks = await readBlocks(deps, source, begin, end).catch((error: unknown) => {
      // The node refused the range, but it may still return single blocks.
      if (source === node && !source.isOpenFor('ranges')) return null;
      throw error;
    });
    if (blocks === null) return readSingly();
    const done = isStopped ? [] : await sources.readLogs(source, blocks);
    if (isStopped) return [];
    const readRest = async (block: ExaminedBlock) =>
      done.find((read) => read.block === block) ?? withLogs(deps, source, block);
    return upToFirstFailure(blocks.map((block) => readRest(block).then(complete)));
  };
  const fill = () => {
    while (!isStopped && !hasFailed && from <= last && from - (ranges[0]?.first ?? from) < MAX_AHEAD) {
      const chosen = sources.withRoom();
      if (chosen === null) return;
      const end = Math.min(last, from + chosen.blocks - 1);
      ranges.push(start(chosen.source, chosen.flight, from, end));
      from = end + 1;
    }
  };
  const start = (source: Node, flight: InFlight, begin: number, end: number): Range => {
    const asked = flight.begin();
    const range: Range = { first: begin, last: end, source, isThere: false, blocks: read(source, begin, end) };
    const onAnswer = () => {
      range.isThere = true;
      asked.onAnswer();
    };
    const onFailure = () => {
      // The caller gets this error when it reaches the range, and resumes from there. Until then, Quittance requests no later range.
      if (source === node) hasFailed = true;
      else countFailure(source);
    };
    range.blocks.then(onAnswer, onFailure).finally(() => {
      asked.onEnd();
      fill();
    });
    return range;
  };
  const fromPreferred = (blocks: Promise<AheadBlock[]>) => judge(node, blocks);
  return {
    /**
     * Returns the next blocks in order, up to the first unreadable one, or `null` at the end. Throws if the preferred node can't provide
     * any.
     */
    next: async (): Promise<AheadRange | null> => {
      fill();
      const range = ranges.shift();
      if (range === undefined) return null;
      const { source, blocks } = range;
      if (source === node) return fromPreferred(blocks);
      const shown = await withinMs(Math.max(MIN_LATE_MS, MAX_TIMES_LATER * sources.leastMs()), blocks);
      if (shown !== null && shown.length === range.last - range.first + 1) return { source, blocks: shown };
      countFailure(source);
      return fromPreferred(read(node, range.first, range.last));
    },
    isNextThere: () => ranges[0]?.isThere === true,
    /** Reads the same blocks from the preferred node. */
    again: ({ blocks }: AheadRange) => {
      const [lowest, highest] = [blocks[0], blocks.at(-1)].map((each) => each?.block.number ?? first);
      return fromPreferred(read(node, lowest ?? first, highest ?? first));
    },
    /** Requests no more ranges from a node until the head is reached. Has no effect on the preferred node. */
    dismiss: countFailure,
    /** Stops reading and drops all pending requests. */
    stop: () => {
      isStopped = true;
    },
  };
}

type Failures = ReturnType<typeof createFailures>;

/** Counts the consecutive failed ranges of each node. Some nodes don't support ranges at all. */
function createFailures() {
  /** By the node's origin. */
  const counts = new Map<string, number>();
  const failuresOf = ({ origin }: Node) => counts.get(origin) ?? 0;
  const countFailure = (node: Node) => void counts.set(node.origin, failuresOf(node) + 1);
  return {
    failuresOf,
    countFailure,
    clear: () => counts.clear(),
    /** Call this when a range of the preferred node has been added to the verified blocks. */
    forgive: (node: Node) => {
      if (failuresOf(node) < MAX_RANGE_FAILURES) counts.delete(node.origin);
    },
    judge: async (node: Node, blocks: Promise<AheadBlock[]>): Promise<AheadRange> => {
      try {
        return { source: node, blocks: await blocks };
      } catch (error) {
        countFailure(node);
        throw error;
      }
    },
  };
}

/** Adds the logs from other operators that already have the block. */
async function withOthers(deps: FollowDeps, nodes: readonly Node[], read: ReadBlock): Promise<AheadBlock> {
  const block = await withQuorum(deps, read, null, othersFor(deps, nodes, read.node));
  // The transactions are no longer needed once the logs have been judged, and they take up most of a block's memory.
  const { isProven: _, transactions: __, ...header } = read.block;
  return { read: { node: read.node, block: header }, block };
}

/** Returns the blocks before the first one that can't be read or judged. Throws if the first block fails. */
async function upToFirstFailure<Result>(reads: readonly Promise<Result>[]): Promise<Result[]> {
  const ready: Result[] = [];
  for (const read of await Promise.allSettled(reads)) {
    if (read.status === 'rejected' && ready.length === 0) throw read.reason;
    if (read.status === 'rejected') break;
    ready.push(read.value);
  }
  return ready;
}

/** Reads single blocks, a few at a time, up to the first that can't be read or doesn't exist. Throws if the first block can't be read. */
async function readOneByOne(
  deps: FollowDeps,
  node: Node,
  first: number,
  last: number,
  complete: (read: ReadBlock) => Promise<AheadBlock>,
): Promise<AheadBlock[]> {
  const ready: AheadBlock[] = [];
  for (let start = first; start <= last; start += PARALLEL_BLOCKS) {
    const count = Math.min(PARALLEL_BLOCKS, last - start + 1);
    const reads = Array.from({ length: count }, async (_, index) => {
      const read = await readBlock(deps, node, start + index);
      return read === null ? null : complete(read);
    });
    for (const read of await Promise.allSettled(reads)) {
      if (read.status === 'rejected' && ready.length === 0) throw read.reason;
      if (read.status === 'rejected' || read.value === null) return ready;
      ready.push(read.value);
    }
  }
  return ready;
}

/** Returns the result, or `null` if the call fails or takes longer than `ms`. */
async function withinMs<Result>(ms: number, result: Promise<Result>): Promise<Result | null> {
  const over = new AbortController();
  try {
    return await Promise.race([result, delay(ms, null, { signal: over.signal })]);
  } catch (error) {
    return orNull(error);
  } finally {
    over.abort();
  }
}

/**
 * Blocks per range, and the bounds of concurrent ranges per node. A node with 300 ms latency needs sixty main-network blocks in flight. If
 * logs replace infos, a range takes two requests. Fewer and longer ranges then stay within a provider's limit of fifteen requests per
 * second.
 */
const SHORT = { blocks: RANGE_BLOCKS, bounds: { most: 12, wait: [2, 4] } } as const;
const LONG = { blocks: LONG_RANGE_BLOCKS, bounds: { most: 3, wait: [1, 2] } } as const;

type Pace = { blocks: number; flight: InFlight };
type Source = { source: Node; short: Pace; long: Pace };

/**
 * Chooses the nodes that provide ranges, and the range length for each. The preferred node comes first. Each other node is used unless it's
 * being avoided, and only until one of its ranges fails.
 */
function createRangeSources(
  deps: FollowDeps,
  avoidance: Avoidance,
  { node, nodes, failuresOf }: { node: Node; nodes: readonly Node[]; failuresOf(node: Node): number },
) {
  const paceFor = ({ blocks, bounds }: typeof SHORT | typeof LONG): Pace => ({
    blocks,
    flight: createInFlight(bounds),
  });
  const sources = nodes
    .filter((each, index) => index === 0 || !avoidance.isAvoided(each))
    .map((source): Source => ({ source, short: paceFor(SHORT), long: paceFor(LONG) }));
  const logs = createLogsReader(deps, nodes);
  const paceOf = ({ source, short, long }: Source) =>
    failuresOf(source) === 0 && logs.areEnoughAsked(source) ? long : short;
  return {
    readLogs: logs.read,
    /** Returns the shortest recent duration of a range from the preferred node in milliseconds, or `USUAL_MS` before the first one. */
    leastMs: () => {
      const preferred = sources.find(({ source }) => source === node);
      const least = preferred === undefined ? 0 : paceOf(preferred).flight.leastMs();
      return Number.isFinite(least) ? least : USUAL_MS;
    },
    /** Returns a node that can provide another range now. */
    withRoom: (): (Pace & { source: Node }) | null => {
      const isGood = ({ source }: Source) => source === node || failuresOf(source) === 0;
      const found = sources.find((each) => isGood(each) && paceOf(each).flight.hasRoom());
      return found === undefined ? null : { source: found.source, ...paceOf(found) };
    },
  };
}

/** Requests logs instead of infos, from the node that provided the range and from as many other operators as must agree. */
function createLogsReader(deps: FollowDeps, nodes: readonly Node[]) {
  const isAble = (node: Node) => node.isOpenFor('logs');
  const askedFor = (source: Node) => ofDifferentOperators([source, ...nodes].filter(isAble), deps.agreement);
  const areEnough = (asked: readonly Node[]) => asked.length === deps.agreement;
  return {
    areEnoughAsked: (source: Node) => areEnough(askedFor(source)),
    read: async (source: Node, blocks: readonly ExaminedBlock[]): Promise<ReadBlock[]> => {
      const asked = askedFor(source);
      if (!areEnough(asked)) return [];
      const shown = await readByLogs(deps, asked, blocks);
      for (const useless of shown.useless)
        useless.setAside('logs', 'its response does not contain all transfers in the blocks');
      return shown.blocks;
    },
  };
}

type InFlight = ReturnType<typeof createInFlight>;

/** The limit until the first measurement. */
const FIRST = 2;
/**
 * `most`: the maximum number of concurrent ranges per node. `wait`: how many ranges should be queued (at the node, in its budget, on the
 * connection or in this process). If fewer ranges than the first number are queued, the connection is sometimes idle. If there are more
 * than the second number, they only use memory.
 */
type InFlightBounds = { most: number; wait: readonly [number, number] };
/**
 * The shortest duration is measured again after this many ranges, because blocks grow and routes become slower. A measurement takes about
 * as long as one range.
 */
const PROBE_RANGES = 200;

/**
 * Limits the number of concurrent ranges of a node, and adapts the limit to the node's capacity, like TCP Vegas. Any time that a range
 * takes beyond the shortest duration is queueing time. If hardly any range is queued, the limit rises by one, up to `most`. If many ranges
 * are queued, the limit falls by one.
 */
export function createInFlight({ most, wait: [few, many] }: InFlightBounds, clockMs = () => performance.now()) {
  let size = FIRST;
  let underWay = 0;
  let leastMs = Number.POSITIVE_INFINITY;
  let untilProbe = 0;
  /** During a probe, the limit stays low until the node answers a range that wasn't queued. */
  const limit = () => (untilProbe === 0 ? FIRST : size);
  const learn = (tookMs: number, wasFull: boolean) => {
    untilProbe = Math.max(0, untilProbe - 1);
    leastMs = Math.min(tookMs, leastMs);
    const waiting = size * (1 - leastMs / tookMs);
    if (waiting > many) size = Math.max(FIRST, size - 1);
    else if (waiting < few && wasFull) size = Math.min(most, size + 1);
  };
  return {
    hasRoom: () => underWay < limit(),
    /** The shortest recent duration of a range in milliseconds, or infinity before the first one. */
    leastMs: () => leastMs,
    /** Call this when a range is requested. Call `onAnswer` only if the range arrives, and `onEnd` in any case. */
    begin: () => {
      const startedMs = clockMs();
      underWay += 1;
      const wasFull = underWay >= size;
      const isProbe = untilProbe === 0;
      return {
        onEnd: () => {
          underWay -= 1;
        },
        onAnswer: () => {
          const tookMs = Math.max(1, clockMs() - startedMs);
          if (untilProbe > 0) learn(tookMs, wasFull);
          else if (isProbe) {
            leastMs = tookMs;
            untilProbe = PROBE_RANGES;
          }
        },
      };
    },
  };
}
