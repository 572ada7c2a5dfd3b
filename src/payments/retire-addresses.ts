import {
  type AddressCounts,
  countAddresses,
  findAddresses,
  markInUse,
  markRetired,
  type OwnedAddress,
} from '../store/addresses.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject, type Project } from '../store/projects.ts';
import type { Candidate, Operating } from './add-addresses.ts';

export type Switched =
  | {
      kind: 'done';
      project: Project;
      changed: OwnedAddress[];
      /** Those that were in that state before. */
      unchanged: OwnedAddress[];
      /** After the change. */
      counts: AddressCounts;
    }
  /** Nothing was changed, because the project does not have these. */
  | { kind: 'unknown'; unknown: Candidate[] }
  /** Nothing was changed, because these are out of use for ever since a restore. */
  | { kind: 'barred'; barred: OwnedAddress[] };

type Wanted = { projectId: string; addresses: readonly Candidate[]; note: string | null };

/** Takes addresses out of use, all of them or none: they get no new invoices and are watched for ever. */
export function retireAddresses(operating: Operating, wanted: Wanted): Promise<Switched> {
  return switchAddresses(operating, wanted, 'address.retired');
}

/** Takes retired addresses into use again, all of them or none. */
export function activateAddresses(operating: Operating, wanted: Wanted): Promise<Switched> {
  return switchAddresses(operating, wanted, 'address.activated');
}

function switchAddresses(
  { db, now, operator }: Operating,
  { projectId, addresses, note }: Wanted,
  action: 'address.retired' | 'address.activated',
): Promise<Switched> {
  return db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    const found = await findAddresses(
      tx,
      project.network,
      addresses.map(({ account }) => account),
    );
    const own = new Map<string, OwnedAddress>(
      found.filter(({ project_id }) => project_id === projectId).map((each) => [each.address, each]),
    );
    const unknown = addresses.filter(({ address }) => !own.has(address));
    if (unknown.length > 0) return { kind: 'unknown', unknown };
    const actedAt = now();
    const all = [...own.values()];
    const barred = all.filter(({ barred_at }) => barred_at !== null);
    if (action === 'address.activated' && barred.length > 0) return { kind: 'barred', barred };
    const ids = all.map(({ id }) => id);
    const marked = action === 'address.retired' ? await markRetired(tx, ids, actedAt) : await markInUse(tx, ids);
    const [changed, unchanged] = [all.filter(({ id }) => marked.has(id)), all.filter(({ id }) => !marked.has(id))];
    await insertOperatorActions(
      tx,
      changed.map(({ address }) => {
        const detail = note === null ? {} : { note };
        return { projectId, action, subject: address, detail, actedBy: operator, actedAt };
      }),
    );
    return { kind: 'done', project, changed, unchanged, counts: await countAddresses(tx, projectId) };
  });
}
