import { AppError } from '../domain/errors.ts';
import { type ChainCursor, findCursor, findEarliestInvoiceTime, insertCursor } from '../store/chain-cursor.ts';
import type { FollowDeps } from './following.ts';
import type { Node } from './node-member.ts';
import { ofDifferentOperators } from './operators.ts';
import { isKnownSolid, loadProducers, refreshProducers } from './producers.ts';
import { type BlockMark, readHeaderAt, readNewestSolid } from './read-block.ts';
import { findBuiltUpon, findStartingBlock, readGenesis } from './starting-block.ts';

/**
 * Sets where a new network is followed from, and learns its producers. There is nothing yet to check nodes against, so
 * `agreement` operators must show the same block 0, producers and starting block. Which block is irreversible is counted by who
 * built on it, as ever after. Errors: `NODES_DISAGREE`, `NO_NODE`, `BLOCK_UNVERIFIABLE`.
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
  for (const node of others) assertSame(node, genesis, await readGenesis(deps, node));
  const newest = await readNewestSolid(deps, first);
  const clock = deps.now();
  const known = await loadProducers(db, network);
  const producers = await refreshProducers(deps, nodes, known, { clock, suspect: null });
  if (!isKnownSolid(producers, newest)) {
    const reason = `${first.origin} calls block ${newest.number} (${newest.id}) irreversible, which none of the producers signed`;
    deps.pool.report(first, 'unverifiable', reason);
    throw new AppError('BLOCK_UNVERIFIABLE', reason, { retryable: true });
  }
  const from = await findStartingBlock(deps, first, { genesis, newest }, await findEarliestInvoiceTime(db, network));
  const start = await findBuiltUpon(deps, first, { genesis, from }, producers);
  for (const node of others) {
    if (start.number > 0) assertSame(node, start, await readHeaderAt(deps, node, start.number));
  }
  await insertCursor(db, network, start, genesis.id);
  log.info(
    { block: start.number, nodes: asked.map(({ origin }) => origin) },
    'following the network from its solid block',
  );
  const inserted = await findCursor(db, network);
  if (inserted === null) throw new Error(`the cursor of ${network} was not stored`);
  return inserted;
}

function assertSame(node: Node, ours: BlockMark, theirs: BlockMark): void {
  if (ours.id === theirs.id) return;
  throw new AppError('NODES_DISAGREE', `block ${ours.number} is ${ours.id}, and ${theirs.id} by ${node.origin}`, {
    retryable: true,
  });
}
