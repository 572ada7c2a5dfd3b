import { AppError } from '../domain/errors.ts';
import { type ChainCursor, findCursor, findEarliestInvoiceTime, insertCursor } from '../store/chain-cursor.ts';
import { insertProducerSet } from '../store/producer-sets.ts';
import type { FollowDeps } from './following.ts';
import type { Node } from './node-member.ts';
import { ofDifferentOperators } from './operators.ts';
import { isKnownSolid, type KnownProducers, nameProducers } from './producers.ts';
import { type BlockMark, readHeaderAt, readNewestSolid, type SolidHeader } from './read-block.ts';
import { findBuiltUpon, findStartingBlock, readGenesis } from './starting-block.ts';

/**
 * Sets where a new network is followed from, and learns its producers. There is nothing yet to check nodes against, so
 * `agreement` operators must show the same block 0, producers and starting block. Which block is irreversible is counted by who
 * built on it, as ever after. Nothing is stored before all of that holds. Errors: `NODES_DISAGREE`, `NO_NODE`,
 * `BLOCK_UNVERIFIABLE`, `NODE_REFUSED`.
 */
export async function startCursor(deps: FollowDeps, nodes: readonly Node[]): Promise<ChainCursor> {
  const { db, network, log, agreement } = deps;
  const asked = ofDifferentOperators(nodes, agreement);
  const [first, ...others] = asked;
  if (first === undefined || asked.length < agreement) {
    throw new AppError('NO_NODE', `the first start needs nodes of ${agreement} operators, and ${asked.length} answer`, {
      retryable: true,
    });
  }
  const genesis = await readGenesis(deps, first);
  for (const node of others) {
    const theirs = await readGenesis(deps, node);
    if (theirs.id !== genesis.id) throw disagree(genesis, theirs, node);
  }
  const newest = await readNewestSolid(deps, first);
  const set = await nameProducers(deps, nodes, { clock: deps.now(), reason: 'first' });
  const producers: KnownProducers = { newest: set, earlier: [] };
  if (!isKnownSolid(producers, newest)) {
    const reason = `${first.origin} calls block ${newest.number} (${newest.id}) irreversible, which none of the producers signed`;
    deps.pool.report(first, 'unverifiable', reason);
    throw new AppError('BLOCK_UNVERIFIABLE', reason, { retryable: true });
  }
  const built = await findBuiltUpon(deps, first, { genesis, newest }, producers);
  await assertShown(deps, producers, { first, block: built, others, isProven: true });
  const start = await findStartingBlock(deps, first, { genesis, built }, await findEarliestInvoiceTime(db, network));
  if (start !== built) await assertShown(deps, producers, { first, block: start, others, isProven: false });
  await db.transaction(async (tx) => {
    // Of two processes that start a network one inserts the cursor, and its producers are those in force.
    if (await insertCursor(tx, network, start, genesis.id)) await insertProducerSet(tx, network, set);
  });
  log.info(
    { block: start.number, nodes: asked.map(({ origin }) => origin) },
    'following the network from its solid block',
  );
  const inserted = await findCursor(db, network);
  if (inserted === null) throw new Error(`the cursor of ${network} was not stored`);
  return inserted;
}

/**
 * Throws unless the others show the same block. Who shows another than one that is proven, or one that none of the producers
 * signed, is paused, so that another is asked.
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
  return new AppError('NODES_DISAGREE', `block ${ours.number} is ${ours.id}, and ${theirs.id} by ${node.origin}`, {
    retryable: true,
  });
}
