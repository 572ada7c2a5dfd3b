import { nameProducers } from '../../chain/verify/producers.ts';
import { insertProducerSet } from '../../store/chain/producer-sets.ts';
import type { Actor } from '../actor.ts';
import type { NodeDeps } from '../node-connection.ts';
import { recordActions } from '../record-actions.ts';
import type { AcceptedProducersView } from './views.ts';

/** Takes over the producers that the nodes name now, although more changed than a vote can: whoever asks knows that the network changed so much. */
export async function acceptProducers(deps: NodeDeps, actor: Actor): Promise<AcceptedProducersView> {
  const { db, network, pool, now } = deps;
  const clock = now();
  const named = await nameProducers(deps, await pool.available(), { clock, reason: 'operator' });
  await db.transaction(async (tx) => {
    await insertProducerSet(tx, network, named);
    const detail = { producers: named.producers.length, nodes: named.nodes };
    await recordActions(tx, actor, clock, [
      { projectId: null, action: 'producers.accepted', subject: network, detail },
    ]);
  });
  return { network, producers: named.producers.length, nodes: [...named.nodes] };
}
