import { encodeId } from '../domain/ids.ts';
import { listAccountKeys } from '../store/account-keys.ts';
import type { Sql } from '../store/database.ts';

/** What an operator can do where payable amounts get scarce, and why the project did not help itself. */
export async function adviseAddresses(db: Sql, projectId: string): Promise<string> {
  const project = encodeId('prj', projectId);
  const add = `Add addresses: quittance address add --project ${project} T…`;
  const spent = (await listAccountKeys(db, projectId)).find(
    ({ is_in_use, auto_derived, auto_derive_limit: limit }) => is_in_use && limit > 0 && auto_derived >= limit,
  );
  if (spent === undefined) return add;
  return `Its account key has yielded ${spent.auto_derived} addresses by itself, which is its limit: raise it with quittance address derive --project ${project} --auto-limit ${spent.auto_derive_limit + RAISED_BY}, if your wallet shows as many. Or: ${add}`;
}

/** For the command that is proposed. */
const RAISED_BY = 100;
