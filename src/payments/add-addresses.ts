import { uuidV7 } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import type { UnixMs } from '../domain/time.ts';
import { findAddresses, insertAddresses, type OwnedAddress } from '../store/addresses.ts';
import type { Database } from '../store/database.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject, type Project } from '../store/projects.ts';
import type { AccountHex, TronAddress } from '../tron/address.ts';

/** What every change by an operator needs. `operator` is the name for the record; `random(n)` returns n random bytes. */
export type Operating = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; operator: string };

export type Candidate = { account: AccountHex; address: TronAddress };

export type Added =
  | { kind: 'added'; project: Project; policy: Policy }
  /** Nothing was added, because these are in a project of the network already. */
  | { kind: 'taken'; taken: OwnedAddress[] };

/** Adds addresses to a project in their order, all of them or none; of the project's policy if none is given. */
export async function addAddresses(
  operating: Operating,
  wanted: { projectId: string; policy: Policy | null; candidates: readonly Candidate[] },
): Promise<Added> {
  const { db, operator, now, random } = operating;
  const { projectId, candidates } = wanted;
  try {
    return await db.transaction(async (tx) => {
      const project = await lockProject(tx, projectId);
      const policy = wanted.policy ?? project.policy;
      const actedAt = now();
      const entries = candidates.map((candidate) => ({ ...candidate, id: uuidV7(actedAt, random(10)), index: null }));
      const added = new Set(await insertAddresses(tx, { projectId, policy, accountKeyId: null, entries }));
      const left = candidates.filter(({ address }) => !added.has(address)).map(({ account }) => account);
      if (left.length > 0) throw new AddressesTaken(await findAddresses(tx, project.network, left));
      await insertOperatorActions(
        tx,
        candidates.map(({ address }) => {
          return {
            projectId,
            action: 'address.added',
            subject: address,
            detail: { policy },
            actedBy: operator,
            actedAt,
          };
        }),
      );
      return { kind: 'added', project, policy };
    });
  } catch (error) {
    if (error instanceof AddressesTaken) return { kind: 'taken', taken: error.taken };
    throw error;
  }
}

/** Rolls the transaction back. */
class AddressesTaken extends Error {
  readonly taken: OwnedAddress[];

  constructor(taken: OwnedAddress[]) {
    super(`${taken.length} addresses are taken`);
    this.taken = taken;
  }
}
