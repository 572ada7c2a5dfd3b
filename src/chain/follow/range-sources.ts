import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import { LONG_RANGE_BLOCKS, RANGE_BLOCKS, type ReadBlock } from '../verify/read-block.ts';
import { readByLogs } from '../verify/read-by-logs.ts';
import type { FollowDeps, Following } from './following.ts';
import { createInFlight, type InFlight, type InFlightBounds } from './in-flight.ts';

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
export function createRangeSources(
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
      for (const useless of shown.useless)
        useless.setAside('logs', 'what it shows does not have the transfers of the blocks');
      return shown.blocks;
    },
  };
}
