import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { commandOf, rowsOf } from '../../store/db/rows-of.ts';
import { hex, text } from '../../store/db/statement.ts';
import type { AccountHex } from '../../tron/address.ts';

/** Takes every address out of use for ever: it is watched, and what its invoices reserve is paid as before. */
export const barAddresses = rowsOf(
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
export async function skipIndexesTo(tx: Sql, index: number): Promise<void> {
  await skipIndexes(tx, index);
  await raiseFirstIndex(tx, index);
}

/** Lets the positions of every project's events go on after one, further than the database takes from anybody else. */
export async function skipPositionsTo(tx: Sql, position: bigint): Promise<void> {
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
