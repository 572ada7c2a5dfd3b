import { indexAt } from '../../domain/derivation-index.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { say, type Text } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { insertOperatorActions, type RecordedActor } from '../../store/access/audit-log.ts';
import { raiseAlarm } from '../../store/chain/alarms.ts';
import type { Sql } from '../../store/db/database.ts';
import { findProjectNetworks } from '../../store/ledger/projects.ts';
import { accountToAddress } from '../../tron/address.ts';
import { barAddresses, skipIndexesTo, skipPositionsTo } from './restore-safety.ts';

/** `write`: an alarm is kept as text, with the names of the face that caused it. */
export type SecureDeps = { now(): UnixMs; random(bytes: number): Uint8Array; write(text: Text): string };

/**
 * Makes a ledger that lacks what happened since it was copied safe to go on with, in the caller's transaction: no address of it gets
 * a new invoice, none that was derived since is derived again, and no position of the feed is given out twice. `origin` says where
 * the data come from, as in "a backup of 2026-11-21T20:39:00.000Z". Returns how many addresses were taken out of use for ever.
 */
export async function secureCopy(tx: Sql, deps: SecureDeps, by: RecordedActor, origin: string): Promise<number> {
  const at = deps.now();
  const barred = await barAddresses(tx, at);
  const detail = { note: `restored from ${origin}` };
  await insertOperatorActions(
    tx,
    barred.map(({ projectId, account }) => {
      return { ...by, projectId, action: 'address.retired', subject: accountToAddress(account), detail, actedAt: at };
    }),
  );
  await skipIndexesTo(tx, indexAt(at));
  // No project ever has a thousand events a second for years, so a clock in milliseconds is ahead of all that was given out.
  await skipPositionsTo(tx, BigInt(at));
  await raiseRestored(tx, { ...deps, now: () => at }, (network) => {
    const { length: count } = barred.filter((each) => each.network === network);
    return say`${origin}. Invoices that were created since are not known, but their payers may still pay: such money shows as unmatched ("${{ command: 'transfers list' }}"). So ${count} addresses were taken out of use for ever; add addresses that Quittance never had ("${{ command: 'address add', input: { isFresh: true } }}", "${{ command: 'address derive' }}"), or new invoices are refused. Keys that were revoked since are valid again: revoke them. See docs/backup.md, then close this`;
  });
  return barred.length;
}

/** Says on every network of the ledger that it was restored, from what, and what is to be done before the alarm is closed. */
export async function raiseRestored(
  tx: Sql,
  { now, random, write }: SecureDeps,
  describe: (network: Network) => Text,
): Promise<void> {
  const at = now();
  for (const network of await findProjectNetworks(tx)) {
    await raiseAlarm(tx, network, {
      ...{ id: uuidV7(at, random(10)), kind: 'database-restored', subject: toIso(at) },
      detail: write(
        say`the database was restored from ${describe(network)} with "${{ command: 'chain acknowledge', input: { alarm: 'database-restored', network } }}"`,
      ),
    });
  }
}
