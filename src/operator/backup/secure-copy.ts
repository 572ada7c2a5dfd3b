import { indexAt } from '../../domain/derivation-index.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { say, type Text } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { insertOperatorActions, type RecordedActor } from '../../store/access/audit-log.ts';
import { raiseAlarm } from '../../store/chain/alarms.ts';
import type { Sql } from '../../store/db/database.ts';
import { commandOf, rowsOf } from '../../store/db/rows-of.ts';
import { hex, text } from '../../store/db/statement.ts';
import { findProjectNetworks } from '../../store/ledger/projects.ts';
import { type AccountHex, accountToAddress } from '../../tron/address.ts';

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

/** Takes every address out of use for ever: it is watched, and what its invoices reserve is paid as before. */
const barAddresses = rowsOf(
  'restore-bar-addresses',
  { projectId: 'uuid', network: text<Network>(), account: hex<AccountHex>() },
  `update addresses set retired_at = coalesce(retired_at, $1), barred_at = $1 where barred_at is null
   returning project_id, network, encode(account, 'hex') as account`,
  (at: UnixMs) => [new Date(at)],
);

const skipIndexes = commandOf(
  'restore-skip-indexes',
  `update account_keys k set first_index = greatest($1, k.first_index,
     (select coalesce(max(a.derivation_index) + 1, 0) from addresses a where a.account_key_id = k.id))`,
  (index: number) => [index],
);

const raiseFirstIndex = commandOf(
  'restore-raise-first-index',
  'update ledger_identity set first_index = greatest(first_index, $1)',
  (index: number) => [index],
);

/** Lets every account key, and those that are added later, go on from an index. */
async function skipIndexesTo(tx: Sql, index: number): Promise<void> {
  await skipIndexes(tx, index);
  await raiseFirstIndex(tx, index);
}

/** Lets the positions of every project's events go on after one, further than the database takes from anybody else. */
async function skipPositionsTo(tx: Sql, position: bigint): Promise<void> {
  await tx.script('alter table event_streams disable trigger event_streams_rise');
  await skipPositions(tx, position);
  await tx.script('alter table event_streams enable trigger event_streams_rise');
}

const skipPositions = commandOf(
  'restore-skip-positions',
  `insert into event_streams as s (project_id, last_position) select id, $1 from projects
   on conflict (project_id) do update set last_position = greatest(s.last_position, excluded.last_position)`,
  (position: bigint) => [position],
);
