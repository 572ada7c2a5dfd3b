import { encodeId } from '../domain/ids.ts';
import type { Sql } from '../store/db/database.ts';
import { listAccountKeys } from '../store/ledger/account-keys.ts';
import { countAddressesInUse } from '../store/ledger/allocation.ts';

/** Says what an operator can do where payable amounts get scarce, and why the project did not help itself. */
export async function adviseAddresses(db: Sql, projectId: string): Promise<string> {
  const project = encodeId('prj', projectId);
  const add = `Add addresses: quittance address add --project ${project} T…`;
  const spent = (await listAccountKeys(db, projectId)).find(
    ({ isInUse, autoDerived, autoDeriveLimit: limit }) => isInUse && limit > 0 && autoDerived >= limit,
  );
  const { frozen } = await countAddressesInUse(db, projectId);
  const why = frozen === 0 ? '' : `Tether froze ${frozen} of its addresses. `;
  if (spent === undefined) return why + add;
  return `${why}Its account key has yielded ${spent.autoDerived} addresses by itself, which is its limit: raise it with quittance address derive --project ${project} --auto-limit ${spent.autoDeriveLimit + RAISED_BY}, if your wallet shows as many. Or: ${add}`;
}

/** For the command that is proposed. */
const RAISED_BY = 100;
