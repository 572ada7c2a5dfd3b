import { uuidV7 } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import { findAccountKey, insertAccountKey } from '../store/account-keys.ts';
import { findAddresses, insertAddresses, type OwnedAddress } from '../store/addresses.ts';
import type { Sql } from '../store/database.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject, type Project } from '../store/projects.ts';
import { type AccountXpub, type DerivedAddress, deriveAddresses } from '../tron/account-xpub.ts';
import type { Operating } from './add-addresses.ts';

export type Derived =
  | {
      kind: 'derived';
      project: Project;
      policy: Policy;
      added: DerivedAddress[];
      /** Those that a project of the network has already, in the order of their index. */
      skipped: (OwnedAddress & { index: number })[];
    }
  | { kind: 'key-of-another-project' };

/** So many addresses that are there already are passed over at most; further on, an operator should look what happened. */
const MAX_SKIPPED = 1000;

/**
 * Adds the next `count` addresses of an account key, which becomes the project's with the first call. What a project of the
 * network has already is passed over. One that was passed over last is looked at again by the next call.
 */
export function deriveNextAddresses(
  operating: Operating,
  wanted: { projectId: string; xpub: AccountXpub; count: number; policy: Policy | null },
): Promise<Derived> {
  const { db, now, random, operator } = operating;
  const { projectId, xpub, count } = wanted;
  return db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    await insertAccountKey(tx, { id: uuidV7(now(), random(10)), projectId, xpub });
    const key = await findAccountKey(tx, project.network, xpub);
    if (key?.project_id !== projectId) return { kind: 'key-of-another-project' };
    const policy = wanted.policy ?? project.policy;
    const added: DerivedAddress[] = [];
    const skipped: (OwnedAddress & { index: number })[] = [];
    for (let index = key.next_index; added.length < count && skipped.length <= MAX_SKIPPED; ) {
      const derived = deriveAddresses(xpub, index, count - added.length);
      index += derived.length;
      const entries = derived.map((each) => ({ ...each, id: uuidV7(now(), random(10)) }));
      const inserted = new Set(await insertAddresses(tx, { projectId, policy, accountKeyId: key.id, entries }));
      added.push(...derived.filter(({ address }) => inserted.has(address)));
      skipped.push(
        ...(await findOwners(
          tx,
          project,
          derived.filter(({ address }) => !inserted.has(address)),
        )),
      );
    }
    const actedAt = now();
    await insertOperatorActions(
      tx,
      added.map(({ address, index }) => {
        const detail = { policy, index, accountKeyId: key.id };
        return { projectId, action: 'address.derived', subject: address, detail, actedBy: operator, actedAt };
      }),
    );
    return { kind: 'derived', project, policy, added, skipped };
  });
}

async function findOwners(tx: Sql, { network }: Project, left: readonly DerivedAddress[]) {
  if (left.length === 0) return [];
  const indexes = new Map<string, number>(left.map(({ address, index }) => [address, index]));
  const owned = await findAddresses(
    tx,
    network,
    left.map(({ account }) => account),
  );
  return owned
    .map((each) => ({ ...each, index: indexes.get(each.address) ?? 0 }))
    .sort((left, right) => left.index - right.index);
}
