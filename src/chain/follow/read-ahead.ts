import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../domain/errors.ts';
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { LONG_RANGE_BLOCKS, RANGE_BLOCKS, type ReadBlock, readRange } from '../verify/read-block.ts';
import { readByLogs } from '../verify/read-by-logs.ts';
import { readBlock, withLogs } from '../verify/read-with-logs.ts';
import type { FollowDeps, Following } from './following.ts';
import { createInFlight, type InFlight, type InFlightBounds } from './in-flight.ts';
import { othersFor, withQuorum } from './quorum.ts';
import type { WindowBlock } from './window.ts';

/** A block that was read and has its logs, as far as other operators show them too; `block.signer` is not looked for yet. */
type AheadBlock = { read: ReadBlock; block: WindowBlock };
export type AheadRange = { source: Node; blocks: AheadBlock[] };

export type ReadAhead = {
  /** The next blocks in order, up to the first that cannot be read; none at the end. Throws where the preferred node shows none. */
  next(): Promise<AheadRange | null>;
  /** The same blocks as the preferred node shows them. */
  again(range: AheadRange): Promise<AheadRange>;
  /** Another node than the preferred one is not asked for ranges again before the head is reached. */
  dismiss(source: Node): void;
  /** Asks for nothing more. What is under way is dropped. */
  stop(): void;
};

/**
 * Blocks of a range, and ranges of one node at once; main-network blocks from a node that is 300 ms away need sixty. Where logs stand for
 * infos a range takes two requests, so that fewer and longer ones keep to a provider's fifteen a second.
 */
const SHORT = { blocks: RANGE_BLOCKS, bounds: { most: 12, wait: [2, 4] } } as const;
const LONG = { blocks: LONG_RANGE_BLOCKS, bounds: { most: 3, wait: [1, 2] } } as const;
/** Blocks that are asked for, or are there and wait for some before them, from all nodes; the last range may exceed it. */
const MAX_AHEAD = 64;
/** A node that showed no logs is not asked for them again for so long. */
const WITHOUT_LOGS_MS = 60_000;
/** Ranges in a row that a node may fail before it is asked for single blocks. */
const MAX_RANGE_FAILURES = 3;
/** Another node may take so many times as long as the preferred one, and so long at least; then its range is read from that one. */
const MAX_TIMES_LATER = 4;
const MIN_LATE_MS = 1000;

type Range = { first: number; last: number; source: Node; blocks: Promise<AheadBlock[]> };

/**
 * Reads the blocks from `first` to `last` in ranges, from all nodes at once, as many ahead as the way to each node asks for. Each block is
 * verified by itself; whether they are one chain is for the caller to check.
 */
export function createReadAhead(
  deps: FollowDeps,
  { rangeFailures, avoided, withoutLogs }: Following,
  { node, nodes, first, last }: { node: Node; nodes: readonly Node[]; first: number; last: number },
): ReadAhead {
  const sources = sourcesOf(nodes, avoided);
  const ranges: Range[] = [];
  let from = first;
  let hasFailed = false;
  let isStopped = false;
  const { failuresOf, countFailure, judge } = createFailures(rangeFailures);
  const logs = createLogsReader(deps, nodes, withoutLogs);
  const paceOf = ({ source, short, long }: Source) =>
    failuresOf(source) === 0 && logs.areEnoughAsked(source) ? long : short;
  const leastMs = () =>
    sources.filter(({ source }) => source === node).map((each) => paceOf(each).flight.leastMs())[0] ?? 0;
  const read = async (source: Node, begin: number, end: number): Promise<AheadBlock[]> => {
    const complete = (block: ReadBlock) => withOthers(deps, nodes, block);
    if (failuresOf(source) >= MAX_RANGE_FAILURES) return readOneByOne(deps, source, begin, end, complete);
    const blocks = await readRange(deps, source, begin, end);
    const done = isStopped ? [] : await logs.read(source, blocks);
    if (isStopped) return [];
    const readRest = async (block: ExaminedBlock) =>
      done.find((read) => read.block === block) ?? withLogs(deps, source, block);
    return upToFirstFailure(blocks.map((block) => readRest(block).then(complete)));
  };
  /** The preferred node first; another one only while all of its ranges are good. */
  const withRoom = () =>
    sources.find((each) => (each.source === node || failuresOf(each.source) === 0) && paceOf(each).flight.hasRoom());
  const fill = () => {
    while (!isStopped && !hasFailed && from <= last && from - (ranges[0]?.first ?? from) < MAX_AHEAD) {
      const chosen = withRoom();
      if (chosen === undefined) return;
      const { blocks, flight } = paceOf(chosen);
      const end = Math.min(last, from + blocks - 1);
      ranges.push(start(chosen.source, flight, from, end));
      from = end + 1;
    }
  };
  const start = (source: Node, flight: InFlight, begin: number, end: number): Range => {
    const asked = flight.begin();
    const range: Range = { first: begin, last: end, source, blocks: read(source, begin, end) };
    const onFailure = () => {
      // The caller hears of it when it comes to this range, and goes on from there: nothing beyond it is asked for.
      if (source === node) hasFailed = true;
      else countFailure(source);
    };
    range.blocks.then(asked.onAnswer, onFailure).finally(() => {
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
      const shown = await withinMs(Math.max(MIN_LATE_MS, MAX_TIMES_LATER * leastMs()), blocks);
      if (shown !== null && shown.length === range.last - range.first + 1) return { source, blocks: shown };
      countFailure(source);
      return fromPreferred(read(node, range.first, range.last));
    },
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

type Pace = { blocks: number; flight: InFlight };
type Source = { source: Node; short: Pace; long: Pace };

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
function createLogsReader(deps: FollowDeps, nodes: readonly Node[], withoutLogs: Following['withoutLogs']) {
  const isAble = ({ origin, hasJsonRpc }: Node) => hasJsonRpc && performance.now() > (withoutLogs.get(origin) ?? 0);
  const askedFor = (source: Node) => ofDifferentOperators([source, ...nodes].filter(isAble), deps.agreement);
  const areEnough = (asked: readonly Node[]) => asked.length === deps.agreement;
  return {
    areEnoughAsked: (source: Node) => areEnough(askedFor(source)),
    read: async (source: Node, blocks: readonly ExaminedBlock[]): Promise<ReadBlock[]> => {
      const asked = askedFor(source);
      if (!areEnough(asked)) return [];
      const shown = await readByLogs(deps, asked, blocks);
      for (const { origin } of shown.useless) withoutLogs.set(origin, performance.now() + WITHOUT_LOGS_MS);
      return shown.blocks;
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
  return { read, block: await withQuorum(deps, read, null, othersFor(deps, nodes, read.node)) };
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

async function readOneByOne(
  deps: FollowDeps,
  node: Node,
  first: number,
  last: number,
  complete: (read: ReadBlock) => Promise<AheadBlock>,
): Promise<AheadBlock[]> {
  const ready: AheadBlock[] = [];
  for (let number = first; number <= last; number += 1) {
    const read = await readBlock(deps, node, number).catch((error: unknown) => {
      if (ready.length === 0) throw error;
      return null;
    });
    if (read === null) break;
    ready.push(await complete(read));
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
