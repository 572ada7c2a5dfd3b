import { type AppError, retryableError } from '../../domain/errors.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { type ChainCursor, findCursor, findEarliestInvoiceTime, insertCursor } from '../../store/chain/cursor.ts';
import { insertProducerSet, type ProducerSet } from '../../store/chain/producer-sets.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isKnownSolid, type KnownProducers, nameProducers, PERIOD_MS, solidHeightBy } from '../verify/producers.ts';
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
import { explainedBy, ofCheckpointChain, type Walk } from '../verify/walk-producers.ts';
import type { FollowDeps } from './following.ts';

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
