import { encodeId } from '../domain/ids.ts';
import { changeAutoDeriveLimit, findAccountKey } from '../store/account-keys.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject } from '../store/projects.ts';
import type { AccountXpub } from '../tron/account-xpub.ts';
import type { Operating } from './add-addresses.ts';

/** Changes how many addresses an account key of a project may yield by itself in all. Returns how many it has. */
export function changeAutoDerivation(
  { db, now, operator }: Operating,
  wanted: { projectId: string; xpub: AccountXpub; limit: number },
): Promise<number> {
  const { projectId, xpub, limit } = wanted;
  return db.transaction(async (tx) => {
    const { network } = await lockProject(tx, projectId);
    const key = await findAccountKey(tx, network, xpub);
    if (key?.project_id !== projectId) throw new Error(`project ${projectId} has no such account key`);
    if (key.auto_derive_limit === limit) return key.auto_derived;
    await changeAutoDeriveLimit(tx, key.id, limit);
    const detail = { autoDeriveLimit: { from: key.auto_derive_limit, to: limit }, accountKeyId: key.id };
    const subject = encodeId('prj', projectId);
    await insertOperatorActions(tx, [
      { projectId, action: 'project.changed', subject, detail, actedBy: operator, actedAt: now() },
    ]);
    return key.auto_derived;
  });
}
