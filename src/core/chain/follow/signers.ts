import type { AccountHex } from '@quittance/tron/address';
import { AppError, retryableError } from '../../domain/errors.ts';
import { type Avoidance, type Node, ofDifferentOperators, orNull } from '../nodes/node.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import {
  isKnownSolid,
  isSignedBy,
  type KnownProducers,
  loadProducers,
  PERIOD_MS,
  refreshProducers,
} from '../verify/producers.ts';
import { blamed, readHeaderAt, readNewestSolid } from '../verify/read-block.ts';
import type { FollowDeps } from './following.ts';
import type { ChainWindow } from './window.ts';

/** Minimum time between two requests for the producers, in blocks. */
const REFRESH_BLOCKS = 1;
/** After a refusal or a disagreement, the producers are requested again after this many blocks, until the alarm is resolved. */
const RETRY_BLOCKS = 20;

type Identified = { node: Node; block: ProvenHeader };
export type Signers = ReturnType<typeof createSigners>;

/**
 * Knows the producers and their keys, and determines which producer signed a block. `initial`: the producers in the database. All times are
 * monotonic.
 */
export function createSigners(
  deps: FollowDeps,
  { window, avoidance, initial }: { window: ChainWindow; avoidance: Avoidance; initial: KnownProducers | null },
) {
  let producers = initial;
  /** The period (of `PERIOD_MS`) in which the producers were last read. */
  let period = -1;
  /** The earliest time at which a block may cause another request. */
  let nextMs = 0;
  /** The time of the next request if nodes refused or disagreed, whichever blocks arrive. */
  let retryMs = 0;
  /**
   * The named producer of the last block that no known key signed, until nodes report its key. Each request for the producers includes this
   * key. Only one suspect is kept, because otherwise forged blocks could make Quittance request every producer's key.
   */
  let suspect: AccountHex | null = null;
  /** The height that `agreement` operators call irreversible. It's requested only when no known key signed a block. */
  let agreedSolid = 0;
  const periodOf = () => Math.floor(window.tip().time / PERIOD_MS);

  /**
   * Requests the producers, including a suspect's key. Keeps the known producers if nodes refuse or disagree. Returns whether enough nodes
   * now confirm the known producers. Throws if none are known.
   */
  const request = async (nodes: readonly Node[]): Promise<boolean> => {
    nextMs = performance.now() + REFRESH_BLOCKS * deps.blockMs;
    const [clock, periodNow] = [deps.now(), periodOf()];
    // The operator may have accepted new producers in the meantime.
    const before = await loadProducers(deps.db, deps.network);
    producers = before;
    try {
      const refreshed = await refreshProducers(deps, nodes, before, { clock, suspect });
      producers = refreshed;
      suspect = null;
      period = periodNow;
      const { reason, producers: members, nodes: reported } = refreshed.newest;
      if (refreshed !== before) {
        deps.log.info({ reason, producers: members.length, nodes: reported }, 'the block producers were updated');
      }
      await deps.alarms.resolve('producers-refused');
      return true;
    } catch (error) {
      if (!(error instanceof AppError) || before === null) throw error;
      period = -1;
      retryMs = performance.now() + RETRY_BLOCKS * deps.blockMs;
      if (error.code === 'NODES_DISAGREE') {
        await deps.alarms.raise('producers-refused', '', `the block producers were not updated: ${error.message}`);
      }
      return false;
    }
  };
  return {
    /** Returns the producers that blocks are currently judged by, or `null` before the first start. */
    known: () => producers,
    request,
    /** Requests the producers once per vote period, and again some blocks after a refusal. */
    requestIfDue: async (nodes: readonly Node[]) => {
      if (periodOf() !== period && performance.now() >= retryMs) await request(nodes);
    },
    /** Makes the next request due at once, because the producers may have changed. */
    expire: () => {
      period = -1;
      nextMs = 0;
      retryMs = 0;
    },
    /**
     * Returns the known producer's key that signed the block, or `null`. At the head, a block that no known key signed is refused after the
     * producers have been requested again. An irreversible block may have a producer that has left since. Such a block waits for the blocks
     * built on it.
     */
    identify: async ({ node, block }: Identified, nodes: readonly Node[]): Promise<AccountHex | null> => {
      // This block's id is proven only by the blocks built on it, because they contain the id.
      if (block.signer === null) return null;
      const isKnown = () => producers !== null && isSignedBy(producers, block);
      if (isKnown()) return block.signer;
      let isAskedNow = false;
      if (performance.now() >= nextMs) {
        suspect = block.producer;
        isAskedNow = await request(nodes);
        if (isKnown()) return block.signer;
        agreedSolid = await readAgreedSolid(deps, producers, nodes);
      }
      if (block.number <= agreedSolid) {
        const others = nodes.filter(({ operator }) => operator !== node.operator);
        const signer = await findSignerElsewhere(deps, producers, block, others);
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
        avoidance.avoid(node);
        throw retryableError('NODES_DISAGREE', `${node.origin}: ${reason}`);
      }
      throw blamed(deps, node, retryableError('BLOCK_UNVERIFIABLE', reason));
    },
  };
}

/**
 * Returns the known key that signed the block according to another operator, or `null`. A block id doesn't cover the signature, so nodes
 * can show different ones.
 */
async function findSignerElsewhere(
  deps: FollowDeps,
  producers: KnownProducers | null,
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
async function readAgreedSolid(
  deps: FollowDeps,
  producers: KnownProducers | null,
  nodes: readonly Node[],
): Promise<number> {
  const operators = ofDifferentOperators(nodes, nodes.length);
  const answers = await Promise.allSettled(operators.map((node) => readNewestSolid(deps, node)));
  const numbers = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && isKnownSolid(producers, answer.value) ? [answer.value.number] : [],
  );
  return numbers.sort((left, right) => right - left)[deps.agreement - 1] ?? 0;
}
