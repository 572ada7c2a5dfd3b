import { acceptProducers as adopt } from '../../chain/verify/producers.ts';
import type { Actor } from '../actor.ts';
import type { NodeDeps } from './read-verified.ts';
import type { AcceptedProducersView } from './views.ts';

/** Takes over the producers that the nodes name now, although more changed than a vote can: whoever asks knows that the network changed so much. */
export async function acceptProducers(deps: NodeDeps, _actor: Actor): Promise<AcceptedProducersView> {
  const { producers, nodes } = await adopt(deps, await deps.pool.available(), deps.now());
  return { network: deps.network, producers: producers.length, nodes: [...nodes] };
}
