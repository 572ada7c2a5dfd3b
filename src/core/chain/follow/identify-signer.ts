import type { AccountHex } from '@quittance/tron/address';
import { AppError } from '../../domain/errors.ts';
import { type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isKnownSolid, isSignedBy, loadProducers, PERIOD_MS, refreshProducers } from '../verify/producers.ts';
import { checked, readHeaderAt, readNewestSolid } from '../verify/read-block.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';

/** Minimum number of blocks between two requests for the producers. */
const REFRESH_BLOCKS = 1;
/** After a refusal or a disagreement, the producers are requested again after this many blocks, until the alarm is resolved. */
const RETRY_BLOCKS = 20;
/** A node whose block can't be judged yet is asked last for this many blocks. */
const AVOID_BLOCKS = 2;

/**
 * Returns the known producer's key that signed the block, or `null`. At the head, a block that no known key signed is refused after the
 * producers have been requested again. In the irreversible past, whose producers may have left, such a block waits for the blocks built on
 * it.
 */
export async function identifySigner(
  deps: FollowDeps,
  following: Following,
  { node, block }: { node: Node; block: ProvenHeader },
  nodes: readonly Node[],
): Promise<AccountHex | null> {
  // Only the blocks built on this one prove its id, because they contain it.
  if (block.signer === null) return null;
  const isKnown = () => following.producers !== null && isSignedBy(following.producers, block);
  if (isKnown()) return block.signer;
  let isAskedNow = false;
  if (performance.now() >= following.producersNextMs) {
    following.suspect = block.producer;
    isAskedNow = await keepProducers(deps, following, nodes);
    if (isKnown()) return block.signer;
    following.agreedSolid = await readAgreedSolid(deps, following, nodes);
  }
  if (block.number <= following.agreedSolid) {
    const others = nodes.filter(({ operator }) => operator !== node.operator);
    const signer = await findSignerElsewhere(deps, following, block, others);
    if (signer === null) return null;
    // The block is genuine, but this node shows a wrong signature for it.
    deps.pool.report(
      node,
      'unverifiable',
      `the signature on block ${block.number} differs from the one that other nodes returned`,
    );
    return signer;
  }
  const reason = `block ${block.number} (${block.id}) names 41${block.producer} as its producer, but is signed with the key 41${block.signer}, which belongs to no known producer`;
  if (!isAskedNow) {
    // Until the producers can be requested, we can't tell which node is wrong. Another node may show a different block.
    avoid(deps, following, node);
    throw new AppError('NODES_DISAGREE', `${node.origin}: ${reason}`, { retryable: true });
  }
  return checked(deps, node, () => {
    throw new AppError('BLOCK_UNVERIFIABLE', reason, { retryable: true });
  });
}

/**
 * Returns the known key that signed the block according to another operator, or `null`. A block id doesn't cover the signature, so nodes
 * can show different ones.
 */
async function findSignerElsewhere(
  deps: FollowDeps,
  { producers }: Following,
  block: ProvenHeader,
  [other]: readonly Node[],
): Promise<AccountHex | null> {
  if (other === undefined || producers === null) return null;
  const shown = await readHeaderAt(deps, other, block.number).catch(orNull);
  return shown !== null && shown.id === block.id && isSignedBy(producers, shown) ? shown.signer : null;
}

/**
 * Returns the height up to which `agreement` operators call the chain irreversible, using only headers by known producers. Returns 0 if too
 * few operators do.
 */
async function readAgreedSolid(deps: FollowDeps, { producers }: Following, nodes: readonly Node[]): Promise<number> {
  const operators = ofDifferentOperators(nodes, nodes.length);
  const answers = await Promise.allSettled(operators.map((node) => readNewestSolid(deps, node)));
  const numbers = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && isKnownSolid(producers, answer.value) ? [answer.value.number] : [],
  );
  return numbers.sort((left, right) => right - left)[deps.agreement - 1] ?? 0;
}

/**
 * Requests the producers, including the key of a suspect one. Keeps the known producers if nodes refuse or disagree. Returns whether enough
 * nodes now confirm the known producers. Throws if none are known.
 */
export async function keepProducers(deps: FollowDeps, following: Following, nodes: readonly Node[]): Promise<boolean> {
  following.producersNextMs = performance.now() + REFRESH_BLOCKS * deps.blockMs;
  const [clock, tip] = [deps.now(), tipOf(following)];
  // The operator may have accepted new producers in the meantime.
  const before = await loadProducers(deps.db, deps.network);
  following.producers = before;
  try {
    following.producers = await refreshProducers(deps, nodes, before, { clock, suspect: following.suspect });
    following.suspect = null;
    following.producersPeriod = Math.floor(tip.time / PERIOD_MS);
    const { reason, producers, nodes: reported } = following.producers.newest;
    if (following.producers !== before) {
      deps.log.info({ reason, producers: producers.length, nodes: reported }, 'the block producers were updated');
    }
    await deps.alarms.resolve('producers-refused');
    return true;
  } catch (error) {
    if (!(error instanceof AppError) || before === null) throw error;
    following.producersPeriod = -1;
    following.producersRetryMs = performance.now() + RETRY_BLOCKS * deps.blockMs;
    if (error.code === 'NODES_DISAGREE') {
      await deps.alarms.raise('producers-refused', '', `the block producers stay unchanged: ${error.message}`);
    }
    return false;
  }
}

/** Prefers other operators for a while without treating this one as faulty. */
export function avoid({ blockMs }: FollowDeps, following: Following, { operator }: Node): void {
  following.avoided = { operator, untilMs: performance.now() + AVOID_BLOCKS * blockMs };
}
