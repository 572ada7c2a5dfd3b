import { type Child, startScript } from '../child.ts';
import type { ChainReady, ChainServerPlan } from './chain-server.ts';

/** A server makes its blocks before it starts: half a millisecond each, and several times that beside other work. */
const [START_LIMIT_MS, BLOCK_LIMIT_MS] = [30_000, 5];

/** Starts nodes in a process of their own. The plan is sent: the payments of a whole day are more than an environment can hold. */
export function startChainServer(plan: ChainServerPlan): Promise<[Child, ChainReady]> {
  const limitMs = START_LIMIT_MS + BLOCK_LIMIT_MS * plan.day.blockCount;
  return startScript('./ingest/chain-server.ts', {}, { order: plan, limitMs });
}
