import { writeCheckpoint } from '../../chain/proof/checkpoints.ts';
import { AppError } from '../../domain/errors.ts';
import type { Network } from '../../domain/network.ts';
import { findHalt } from '../../store/chain/cursor.ts';
import { findProducerSets } from '../../store/chain/producer-sets.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { followedCursor } from './followed-cursor.ts';
import type { CheckpointView } from './views.ts';

/** Where the ledger stands, with the producers in force. Errors: `CONFLICT` while it is halted, `NOT_FOUND`. */
export async function makeCheckpoint(
  { db }: { db: Sql },
  _actor: Actor,
  { network }: { network: Network },
): Promise<CheckpointView> {
  const { solid } = await followedCursor(db, network);
  const halt = await findHalt(db, network);
  if (halt !== null) throw new AppError('CONFLICT', `${network} is halted, and where it stands is in doubt`);
  const [set] = await findProducerSets(db, network, 1);
  if (set === undefined || solid.number === 0) {
    throw new AppError('NOT_FOUND', `${network} was not followed for long enough: let the service run for a while`);
  }
  const { producers, ...block } = writeCheckpoint({ network, ...solid, producers: set.producers });
  return { ...block, producers: [...producers] };
}
