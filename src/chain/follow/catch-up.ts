import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../domain/errors.ts';
import type { Watching } from '../../payments/watching.ts';
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import type { ExaminedBlock, ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy } from '../verify/producers.ts';
import { LONG_RANGE_BLOCKS, RANGE_BLOCKS, type ReadBlock, readRange } from '../verify/read-block.ts';
import { readByLogs } from '../verify/read-by-logs.ts';
import { readBlock, withLogs } from '../verify/read-with-logs.ts';
import { assertLater, extend } from './extend.ts';
import { BATCH_BLOCKS, finalize, ownSolidOf } from './finalize.ts';
import { type FollowDeps, type Following, replaceFrom, tipOf } from './following.ts';
import { avoid, identifySigner } from './identify-signer.ts';
import { awaitsOperator, gatherOpen, othersFor, withQuorum } from './quorum.ts';
import { isNext, type WindowBlock } from './window.ts';

/** Blocks that wait for agreement, at most: half an hour of them, up to a hundred megabytes. */
const MAX_OPEN_BLOCKS = 600;
/** Verified blocks above the solid one, at most: four hours in which too few producers work, up to 160 megabytes. */
const MAX_WINDOW_BLOCKS = 4800;
/** Blocks after which a claim of a node, or a window, must have been borne out: 19 different producers take one minute. */
const STUCK_BLOCKS = 200;

/** Whether no further block should be read before some were recorded. */
export function isWindowFull({ window }: Following): boolean {
  const open = window.filter(({ agreed }) => agreed === null).length;
  return open + LONG_RANGE_BLOCKS > MAX_OPEN_BLOCKS || window.length + LONG_RANGE_BLOCKS > MAX_WINDOW_BLOCKS;
}

/**
 * Replays the irreversible blocks after the newest verified one, in order, with ranges read ahead; none of them is skipped
 * however long the gap. Ranges that have arrived are recorded together, because a transaction takes as long for one as for all; `onProgress`
 * is called after each. Ends at what the node said is irreversible, at a full window,
 * when `isStopping`, or with the error of a block that cannot be read or verified; the next call goes on from there.
 */
export async function catchUp(
  deps: FollowDeps,
  watching: Watching,
  following: Following,
  options: { node: Node; nodes: readonly Node[]; isStopping(): boolean; onProgress(): Promise<void> },
): Promise<void> {
  const { node, nodes, isStopping, onProgress } = options;
  const last = following.nodeSolid.number;
  const ahead = createReadAhead(deps, following, { node, nodes, first: tipOf(following).number + 1, last });
  const pending: AheadRange[] = [];
  const record = async () => {
    const sources = new Set(pending.splice(0).map(({ source }) => source));
    await gatherOpen(deps, following);
    if ((await finalize(deps, watching, following)) > 0) for (const source of sources) deps.pool.praise(source);
    await onProgress();
  };
  try {
    while (!isStopping() && !isWindowFull(following) && !awaitsOperator(following)) {
      const range = await nextLinked(following, ahead, node);
      if (range === null) break;
      if (range.blocks[0]?.block.parentId !== tipOf(following).id) {
        // The blocks verified before are a branch that lost: walk back to where the chain split, one block at a time.
        await record();
        await extend(deps, following, node, nodes);
        return;
      }
      await take(deps, following, range, nodes).catch((error: unknown) => {
        if (range.source !== node) ahead.dismiss(range.source);
        throw error;
      });
      pending.push(range);
      const count = pending.reduce((sum, { blocks }) => sum + blocks.length, 0);
      if (count >= BATCH_BLOCKS / 2 || !ahead.isNextThere()) await record();
    }
    await record();
  } catch (error) {
    // The blocks before one that cannot be read or judged need not wait for it.
    if (pending.length > 0) await record();
    throw error;
  } finally {
    ahead.stop();
  }
}

/**
 * The next range. One of another node counts only if it goes on from ours by blocks of known producers: a liar among several could
 * otherwise have us walk back again and again.
 */
async function nextLinked(following: Following, ahead: ReadAhead, node: Node): Promise<AheadRange | null> {
  const range = await ahead.next();
  if (range === null || range.source === node) return range;
  const { blocks, source } = range;
  const isLinked = blocks.every(({ block }, index) => isNext(blocks[index - 1]?.block ?? tipOf(following), block));
  if (!isLinked) ahead.dismiss(source);
  const { producers } = following;
  const isSigned = blocks.every(({ read }) => producers !== null && isSignedBy(producers, read.block));
  return isLinked && isSigned ? range : ahead.again(range);
}

/** Adds the blocks of a range to the window once they are known to be right. */
async function take(
  deps: FollowDeps,
  following: Following,
  { source, blocks }: AheadRange,
  nodes: readonly Node[],
): Promise<void> {
  assertLater(
    deps,
    tipOf(following),
    blocks.map(({ read }) => read),
  );
  // The blocks go one after the other: the first block of an unknown producer makes us ask the nodes, the next ones use the answer.
  for (const { read, block } of blocks) block.signer = await identifySigner(deps, following, read, nodes);
  pushLinked(
    deps,
    following,
    source,
    blocks.map(({ block }) => block),
  );
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
  replaceFrom(following, 0);
  following.solidClaim = null;
  following.producersPeriod = -1;
  following.producersNextMs = 0;
  following.producersRetryMs = 0;
}

/** A block that was read and has its logs, as far as other operators show them too; `block.signer` is not looked for yet. */
type AheadBlock = { read: { node: Node; block: ProvenHeader }; block: WindowBlock };
type AheadRange = { source: Node; blocks: AheadBlock[] };

type ReadAhead = {
  /** The next blocks in order, up to the first that cannot be read; none at the end. Throws where the preferred node shows none. */
  next(): Promise<AheadRange | null>;
  /** Whether the next blocks are there already. */
  isNextThere(): boolean;
  /** The same blocks as the preferred node shows them. */
  again(range: AheadRange): Promise<AheadRange>;
  /** Another node than the preferred one is not asked for ranges again before the head is reached. */
  dismiss(source: Node): void;
  /** Asks for nothing more. What is under way is dropped. */
  stop(): void;
};

/** Blocks that are asked for, or are there and wait for some before them, from all nodes; the last range may exceed it. */
const MAX_AHEAD = 64;
/** Ranges in a row that a node may fail before it is asked for single blocks. */
const MAX_RANGE_FAILURES = 3;
/** Single blocks that a node is asked for at the same time. */
const PARALLEL_BLOCKS = 4;
/** Another node may take so many times as long as the preferred one, and so long at least; then its range is read from that one. */
const MAX_TIMES_LATER = 4;
const MIN_LATE_MS = 1000;

type Range = { first: number; last: number; source: Node; isThere: boolean; blocks: Promise<AheadBlock[]> };

/**
 * Reads the blocks from `first` to `last` in ranges, from all nodes at once, as many ahead as the way to each node asks for. Each block is
 * verified by itself; whether they are one chain is for the caller to check.
 */
function createReadAhead(
  deps: FollowDeps,
  following: Following,
  { node, nodes, first, last }: { node: Node; nodes: readonly Node[]; first: number; last: number },
): ReadAhead {
  const ranges: Range[] = [];
  let from = first;
  let hasFailed = false;
  let isStopped = false;
  const { failuresOf, countFailure, judge } = createFailures(following.rangeFailures);
  const sources = createRangeSources(deps, following, { node, nodes, failuresOf });
  const read = async (source: Node, begin: number, end: number): Promise<AheadBlock[]> => {
    const complete = (block: ReadBlock) => withOthers(deps, nodes, block);
    const readSingly = () => readOneByOne(deps, source, begin, end, complete);
    if (failuresOf(source) >= MAX_RANGE_FAILURES || !source.isOpenFor('ranges')) return readSingly();
    const blocks = await readRange(deps, source, begin, end).catch((error: unknown) => {
      // It refused, and may show single blocks.
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
      // The caller hears of it when it comes to this range, and goes on from there: nothing beyond it is asked for.
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
    next: async () => {
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
    again: ({ blocks }) => {
      const [lowest, highest] = [blocks[0], blocks.at(-1)].map((each) => each?.block.number ?? first);
      return fromPreferred(read(node, lowest ?? first, highest ?? first));
    },
    dismiss: countFailure,
    stop: () => {
      isStopped = true;
    },
  };
}

/** Ranges in a row that each node failed. */
function createFailures(counts: Following['rangeFailures']) {
  const failuresOf = ({ origin }: Node) => counts.get(origin) ?? 0;
  const countFailure = (node: Node) => void counts.set(node.origin, failuresOf(node) + 1);
  return {
    failuresOf,
    countFailure,
    judge: async (node: Node, blocks: Promise<AheadBlock[]>): Promise<AheadRange> => {
      try {
        const shown = await blocks;
        if (failuresOf(node) < MAX_RANGE_FAILURES) counts.delete(node.origin);
        return { source: node, blocks: shown };
      } catch (error) {
        countFailure(node);
        throw error;
      }
    },
  };
}

/** Adds what other operators show of a block, as far as they have it. */
async function withOthers(deps: FollowDeps, nodes: readonly Node[], read: ReadBlock): Promise<AheadBlock> {
  const block = await withQuorum(deps, read, null, othersFor(deps, nodes, read.node));
  // Once its logs are judged nothing asks for its transactions, which take most of its memory.
  const { isProven: _, transactions: __, ...header } = read.block;
  return { read: { node: read.node, block: header }, block };
}

/** Those before the first block that cannot be read or judged need not wait for it. Throws where that is the first one. */
async function upToFirstFailure<Result>(reads: readonly Promise<Result>[]): Promise<Result[]> {
  const ready: Result[] = [];
  for (const read of await Promise.allSettled(reads)) {
    if (read.status === 'rejected' && ready.length === 0) throw read.reason;
    if (read.status === 'rejected') break;
    ready.push(read.value);
  }
  return ready;
}

/** Single blocks, a few at the same time, up to the first that cannot be read or is not there. Throws where the first one cannot be read. */
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

/** `null`: it failed, or takes longer. */
async function withinMs<Result>(ms: number, result: Promise<Result>): Promise<Result | null> {
  const over = new AbortController();
  try {
    return await Promise.race([result, delay(ms, null, { signal: over.signal })]);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  } finally {
    over.abort();
  }
}

/**
 * Blocks of a range, and ranges of one node at once; main-network blocks from a node that is 300 ms away need sixty. Where logs stand for
 * infos a range takes two requests, so that fewer and longer ones keep to a provider's fifteen a second.
 */
const SHORT = { blocks: RANGE_BLOCKS, bounds: { most: 12, wait: [2, 4] } } as const;
const LONG = { blocks: LONG_RANGE_BLOCKS, bounds: { most: 3, wait: [1, 2] } } as const;

type Pace = { blocks: number; flight: InFlight };
type Source = { source: Node; short: Pace; long: Pace };

/**
 * The nodes that give ranges, and how long the ranges of each are. The preferred node comes first; another one only while all of its ranges
 * are good.
 */
function createRangeSources(
  deps: FollowDeps,
  { avoided }: Following,
  { node, nodes, failuresOf }: { node: Node; nodes: readonly Node[]; failuresOf(node: Node): number },
) {
  const sources = sourcesOf(nodes, avoided);
  const logs = createLogsReader(deps, nodes);
  const paceOf = ({ source, short, long }: Source) =>
    failuresOf(source) === 0 && logs.areEnoughAsked(source) ? long : short;
  return {
    readLogs: logs.read,
    /** The shortest time that a range of the preferred node took lately, in milliseconds. */
    leastMs: () => {
      const preferred = sources.find(({ source }) => source === node);
      return preferred === undefined ? 0 : paceOf(preferred).flight.leastMs();
    },
    /** A node that may be asked for another range. */
    withRoom: (): (Pace & { source: Node }) | null => {
      const isGood = ({ source }: Source) => source === node || failuresOf(source) === 0;
      const found = sources.find((each) => isGood(each) && paceOf(each).flight.hasRoom());
      return found === undefined ? null : { source: found.source, ...paceOf(found) };
    },
  };
}

/** The preferred node, and those others that are not avoided for a moment. */
function sourcesOf(nodes: readonly Node[], avoided: Following['avoided']): Source[] {
  const isAvoided = ({ operator }: Node) => operator === avoided?.operator && performance.now() < avoided.untilMs;
  return nodes
    .filter((each, index) => index === 0 || !isAvoided(each))
    .map((source) => ({ source, short: paceFor(SHORT), long: paceFor(LONG) }));
}

function paceFor({ blocks, bounds }: { blocks: number; bounds: InFlightBounds }): Pace {
  return { blocks, flight: createInFlight(bounds) };
}

/** Asks the node that shows a range, and as many of other operators as must agree, for logs in place of infos. */
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
      for (const useless of shown.useless) useless.setAside('logs', 'its answer lacks transfers of the blocks');
      return shown.blocks;
    },
  };
}

/** How many ranges a node is asked for at the same time. */
type InFlight = {
  hasRoom(): boolean;
  /** A range is asked for. Call what it returns when the range is there; not when it failed. */
  begin(): { onAnswer(): void; onEnd(): void };
  /** The shortest time that a range took lately, in milliseconds; infinite before the first. */
  leastMs(): number;
};

/** Before anything is measured. */
const FIRST = 2;
/**
 * `most`: of one node. `wait`: ranges that wait somewhere, in a queue of the node, its budget, the line or this process; with fewer than the
 * first number the way is empty now and then, more than the second only take memory.
 */
type InFlightBounds = { most: number; wait: readonly [number, number] };
/** The shortest time is measured anew after so many ranges, for blocks grow, and ways become longer. It costs the time of about one. */
const PROBE_RANGES = 200;

/**
 * As many as the way to the node holds, found as TCP Vegas does: the time that a range takes beyond the shortest is time that it
 * waited for others. While hardly any waits, one more is sent, up to `most`; when many do, one fewer.
 */
export function createInFlight(
  { most, wait: [few, many] }: InFlightBounds,
  clockMs = () => performance.now(),
): InFlight {
  let size = FIRST;
  let underWay = 0;
  let leastMs = Number.POSITIVE_INFINITY;
  let untilProbe = 0;
  /** Hardly any are sent until one came back that met no queue. */
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
    leastMs: () => leastMs,
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
