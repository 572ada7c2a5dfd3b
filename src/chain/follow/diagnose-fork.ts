import { AppError } from '../../domain/errors.ts';
import { findGenesisId, setHalt } from '../../store/chain/cursor.ts';
import type { Node } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isSignedBy } from '../verify/producers.ts';
import { checked, readHeaderAt } from '../verify/read-block.ts';
import { readGenesis } from '../verify/starting-block.ts';
import type { FollowDeps, Following } from './following.ts';

/**
 * A node shows a verified block that does not build on our irreversible one. Finds out what that means, and returns what to
 * throw: the node is of another network, or its answers do not fit together, or its irreversible chain is another than ours.
 * When `agreement` operators show the latter, the watcher halts until an operator decides: a ledger is not repaired silently.
 */
export async function diagnoseFork(
  deps: FollowDeps,
  following: Following,
  node: Node,
  block: ProvenHeader,
): Promise<AppError> {
  const { base } = following;
  const genesisId = await findGenesisId(deps.db, deps.network);
  const { id: shownGenesis } = await readGenesis(deps, node);
  if (genesisId !== null && shownGenesis !== genesisId) {
    const reason = `${node.origin} shows another network: its block 0 is ${shownGenesis}, and ours is ${genesisId}`;
    deps.pool.report(node, 'wrong-network', reason);
    return new AppError('NODE_WRONG_NETWORK', reason, { retryable: true });
  }
  const shown = await readHeaderAt(deps, node, base.number);
  if (shown.id === base.id) {
    const reason = `${node.origin} shows block ${block.number} (${block.id}), which does not build on its own irreversible block ${base.id}`;
    deps.pool.report(node, 'incomplete', reason);
    return new AppError('NODE_REFUSED', reason, { retryable: true });
  }
  const reason = `the irreversible block ${base.number} is ${base.id} in our books, and ${shown.id} by ${node.origin}`;
  // Anybody can write a header; one that no known key signed contradicts nothing.
  if (following.producers === null || !isSignedBy(following.producers, shown)) {
    return checked(deps, node, () => {
      throw new AppError('BLOCK_UNVERIFIABLE', `${reason}, signed by no producer that we know`, { retryable: true });
    });
  }
  deps.pool.report(node, 'contradicts', reason);
  following.diagnosingFork.set(node.operator, reason);
  if (following.diagnosingFork.size >= deps.agreement) {
    const all = [...following.diagnosingFork.values()].join('; ');
    const detail = `the watcher stopped: ${all}. Find out which is right; when the nodes show our block again, run: quittance chain resume --network ${deps.network}`;
    await deps.db.transaction(async (tx) => {
      await setHalt(tx, deps.network, all);
      await deps.alarms.raise('halted', String(base.number), detail, tx);
    });
    following.diagnosingFork.clear();
  }
  return new AppError('CHAIN_CONTRADICTION', reason, { retryable: true });
}
