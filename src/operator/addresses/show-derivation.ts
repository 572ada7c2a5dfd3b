import { encodeId } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findNextAddresses } from '../../payments/derive-addresses.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../select-project.ts';
import { firstAddresses } from './confirm-key.ts';
import { type DerivationKey, notDerived } from './derive-addresses.ts';
import type { DerivationView } from './views.ts';

/** The addresses that an account key would add next, to be compared with a wallet. Nothing is stored. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function showDerivation(
  deps: { db: Database; now(): UnixMs },
  actor: Actor,
  { key, count, isFresh }: { key: DerivationKey; count: number; isFresh: boolean },
): Promise<DerivationView> {
  const { id: projectId } = await selectProject(deps.db, actor, key.projectId);
  const next = await findNextAddresses(deps, { projectId, xpub: key.xpub, count, isFresh });
  if (next.kind !== 'found') throw notDerived(next);
  return {
    projectId: key.projectId,
    isStored: key.isStored,
    first: firstAddresses(key.xpub).addresses,
    next: next.free.map(({ address, index }) => ({ address, derivationIndex: index })),
    skipped: next.skipped.map(({ address, index, projectId: of }) => {
      return { address, derivationIndex: index, projectId: encodeId('prj', of) };
    }),
  };
}
