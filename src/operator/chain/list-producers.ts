import type { Network } from '../../domain/network.ts';
import { toIso } from '../../domain/time.ts';
import { findProducerSets } from '../../store/chain/producer-sets.ts';
import type { Sql } from '../../store/db/database.ts';
import { accountToAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import type { ProducersView } from './views.ts';

const MAX_SETS = 100;

/** The producers that were ever taken over, the newest first: since when, why, and which nodes named them. */
export async function listProducers(
  { db }: { db: Sql },
  _actor: Actor,
  { network }: { network: Network },
): Promise<ProducersView> {
  const sets = await findProducerSets(db, network, MAX_SETS);
  const data = sets.map(({ adoptedAt, reason, nodes, producers }) => ({
    ...{ adoptedAt: toIso(adoptedAt), reason, nodes: [...nodes] },
    producers: producers.map(({ account, signer }) => ({
      address: accountToAddress(account),
      signer: accountToAddress(signer),
    })),
  }));
  return { network, data };
}
