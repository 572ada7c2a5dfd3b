import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { type AddressChange, findAddressChange } from '../../store/ledger/address-changes.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip } from '../input/clip.ts';
import type { AddressChangeView } from './views.ts';

/** The change with this `chg_…`. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function selectChange(db: Sql, actor: Actor, changeId: string): Promise<AddressChange> {
  const id = decodeId('chg', changeId);
  if (id === null) {
    throw new AppError(
      'INVALID_ARGUMENT',
      say`${clip(changeId)} is not the id of a change: it is "chg_" and 26 characters, as "${{ command: 'address pending' }}" shows it`,
    );
  }
  const change = await findAddressChange(db, id);
  if (change !== null && maySee(actor, change.projectId)) return change;
  throw new AppError(
    'NOT_FOUND',
    say`there is no change ${changeId}: "${{ command: 'address pending' }}" shows those that wait`,
  );
}

/** The refusal of what only a change that waits takes. */
export function hasEnded(change: AddressChange): AppError {
  const at = change.endedAt === null ? '' : ` by ${change.endedBy} at ${toIso(change.endedAt)}`;
  return new AppError('CONFLICT', `${encodeId('chg', change.id)} was ${ENDED[change.state]}${at}: it waits no more`);
}

const ENDED: Readonly<Record<AddressChange['state'], string>> = {
  ...{ waiting: 'waiting', applied: 'made', withdrawn: 'withdrawn', failed: 'found to be impossible' },
};

export function viewChange(change: AddressChange, { role }: Pick<Actor, 'role'>): AddressChangeView {
  const { actorKind: kind, actedBy: name, derivation, endedAt } = change;
  return {
    ...{ changeId: encodeId('chg', change.id), projectId: encodeId('prj', change.projectId), network: change.network },
    ...{ state: change.state, policy: change.policy, addresses: [...change.addresses] },
    derivationIndexes: derivation && [...derivation.indexes],
    ...{ proposedBy: { kind, name }, origin: role === 'owner' ? change.origin : null },
    ...{ proposedAt: toIso(change.proposedAt), dueAt: toIso(change.dueAt) },
    ...{ endedAt: endedAt && toIso(endedAt), endedBy: change.endedBy, reason: change.reason },
  };
}
