import { type Child, startScript } from '../child.ts';
import type { ChainReady, ChainServerPlan } from './chain-server.ts';

/** A server creates its blocks before it starts: half a millisecond per block, or several times that if the machine is busy. */
const [START_LIMIT_MS, BLOCK_LIMIT_MS] = [30_000, 5];

/**
 * Starts nodes in their own process. The plan is sent as a message, because the payments of a whole day don't fit in an environment
 * variable.
 */
export function startChainServer(plan: ChainServerPlan): Promise<[Child, ChainReady]> {
  const limitMs = START_LIMIT_MS + BLOCK_LIMIT_MS * plan.day.blockCount;
  return startScript('./ingest/chain-server.ts', {}, { order: plan, limitMs });
}
