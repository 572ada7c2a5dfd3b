import type { AccountHex } from '@quittance/tron/address';
import { AppError } from '../../domain/errors.ts';
import type { Node } from '../nodes/node.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import { orNull } from '../proof/or-null.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { isKnownSolid, isSignedBy, loadProducers, PERIOD_MS, refreshProducers } from '../verify/producers.ts';
import { checked, readHeaderAt, readNewestSolid } from '../verify/read-block.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';

/** The minimum interval between requests for the producers. */
const REFRESH_BLOCKS = 1;
/** After a refusal or a disagreement the producers are requested again at this interval, until the alarm is resolved. */
const RETRY_BLOCKS = 20;
/** For this long a node whose block can't be judged yet is asked last. */
const AVOID_BLOCKS = 2;

/**
 * The key of a known producer that signed the block, or `null`. At the head, a block that no known key signed is refused after the
 * producers were requested again. In the irreversible past, whose producers may have left, such a block waits for the blocks on top of it.
 */
export async function identifySigner(
  deps: FollowDeps,
  following: Following,
  { node, block }: { node: Node; block: ProvenHeader },
  nodes: readonly Node[],
): Promise<AccountHex | null> {
  // Only the blocks on top prove the id of this block, because they name it.
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
    // The block is right, but the signature that this node shows for it is wrong.
    deps.pool.report(
      node,
      'unverifiable',
      `the signature of block ${block.number} differs from the one that other nodes show`,
    );
    return signer;
  }
  const reason = `block ${block.number} (${block.id}) names 41${block.producer} as its producer, but is signed with the key 41${block.signer}, which belongs to no known producer`;
  if (!isAskedNow) {
    // Until the producers can be requested, it's unclear which node is wrong. Another node may show another block.
    avoid(deps, following, node);
    throw new AppError('NODES_DISAGREE', `${node.origin}: ${reason}`, { retryable: true });
  }
  return checked(deps, node, () => {
    throw new AppError('BLOCK_UNVERIFIABLE', reason, { retryable: true });
  });
}

/** The known key that signed the same block as another operator shows it. The block id doesn't cover the signature. `null`: none. */
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

/** The height up to which `agreement` operators call the chain irreversible, by headers of known producers. 0 if too few do. */
async function readAgreedSolid(deps: FollowDeps, { producers }: Following, nodes: readonly Node[]): Promise<number> {
  const operators = ofDifferentOperators(nodes, nodes.length);
  const answers = await Promise.allSettled(operators.map((node) => readNewestSolid(deps, node)));
  const numbers = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && isKnownSolid(producers, answer.value) ? [answer.value.number] : [],
  );
  return numbers.sort((left, right) => right - left)[deps.agreement - 1] ?? 0;
}

/**
 * Requests the producers, with the key of a suspect one. Keeps the known producers if nodes refuse or disagree. Returns whether the known
 * producers are now those that enough nodes name. Throws while none are known.
 */
export async function keepProducers(deps: FollowDeps, following: Following, nodes: readonly Node[]): Promise<boolean> {
  following.producersNextMs = performance.now() + REFRESH_BLOCKS * deps.blockMs;
  const [clock, tip] = [deps.now(), tipOf(following)];
  // An operator may have accepted other producers in the meantime.
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

/** Prefers other operators for a while, without blaming this one. */
export function avoid({ blockMs }: FollowDeps, following: Following, { operator }: Node): void {
  following.avoided = { operator, untilMs: performance.now() + AVOID_BLOCKS * blockMs };
}
