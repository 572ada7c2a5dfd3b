import { indexAt } from '../domain/derivation-index.ts';
import { uuidV7 } from '../domain/ids.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import { raiseAlarm } from '../store/alarms.ts';
import type { Sql } from '../store/database.ts';
import { barAddresses, findProjectNetworks, skipIndexesTo, skipPositionsTo } from '../store/restore-safety.ts';

export type SecureDeps = { now(): UnixMs; random(bytes: number): Uint8Array; operator: string };

/** How many addresses of each network were taken out of use for ever. */
export type Secured = { network: string; barred: number }[];

/**
 * Makes a ledger that lacks what happened since it was copied safe to go on with, in the caller's transaction: no address of it gets
 * a new invoice, none that was derived since is derived again, and no position of the feed is given out twice. `origin` says where
 * the data come from, as in "a backup of 2026-11-21T20:39:00.000Z".
 */
export async function secureCopy(tx: Sql, { now, random, operator }: SecureDeps, origin: string): Promise<Secured> {
  const at = now();
  const barred = await barAddresses(tx, { at, note: `restored from ${origin}`, operator });
  await skipIndexesTo(tx, indexAt(at));
  // No project ever has a thousand events a second for years, so a clock in milliseconds is ahead of all that was given out.
  await skipPositionsTo(tx, BigInt(at));
  const networks = await findProjectNetworks(tx);
  for (const network of networks) {
    const count = barred.find((each) => each.network === network)?.count ?? 0;
    const detail = `the database was restored from ${origin}. Invoices that were created since are not known, but their payers may still pay: such money shows as unmatched ("quittance transfers list"). So ${count} addresses were taken out of use for ever; add addresses that Quittance never had ("quittance address add --fresh", "quittance address derive"), or new invoices are refused. Keys that were revoked since are valid again: revoke them. See docs/backup.md, then close this with "quittance chain acknowledge --alarm database-restored --network ${network}"`;
    await raiseAlarm(tx, network as Network, {
      id: uuidV7(at, random(10)),
      kind: 'database-restored',
      subject: new Date(at).toISOString(),
      detail,
    });
  }
  return networks.map((network) => {
    return { network, barred: barred.find((each) => each.network === network)?.count ?? 0 };
  });
}
