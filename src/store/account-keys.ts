import type { Network } from '../domain/network.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

const columns = { id: 'uuid', project_id: 'uuid', xpub: 'text', next_index: 'int4', was_restored: 'bool' } as const;

/**
 * A watch-only account key. `next_index` follows the highest index that an address was derived with, or is far above it after a
 * restore (`was_restored`).
 */
export type AccountKey = Row<typeof columns>;

const SELECT = `select k.id, k.project_id, k.xpub,
   greatest(k.first_index, (select coalesce(max(derivation_index) + 1, 0) from addresses where account_key_id = k.id)) as next_index,
   k.first_index > 0 as was_restored
   from account_keys k`;

const find = statement('account-key-find', columns, `${SELECT} where k.network = $1 and k.xpub = $2`);

/** The key with this xpub, of whichever project of the network has it. */
export async function findAccountKey(db: Sql, network: Network, xpub: string): Promise<AccountKey | null> {
  const [row] = await db.run(find, [network, xpub]);
  return row ?? null;
}

const list = statement(
  'account-key-list',
  columns,
  `${SELECT} where k.project_id = $1 order by k.created_at, k.id limit 100`,
);

/** The oldest 100 keys of a project. */
export async function listAccountKeys(db: Sql, projectId: string): Promise<AccountKey[]> {
  return db.run(list, [projectId]);
}

const selectFirstIndex = statement(
  'account-key-first-index',
  { first_index: 'int4' },
  'select coalesce((select first_index from ledger_identity), 0) as first_index',
);

/** Where an account key begins that may have been in the ledger before it was restored; 0 in one that never was. */
export async function findFirstIndex(db: Sql): Promise<number> {
  return (await db.run(selectFirstIndex, []))[0]?.first_index ?? 0;
}

const insert = statement(
  'account-key-insert',
  {},
  `insert into account_keys (id, project_id, network, xpub, first_index)
   select $1, p.id, p.network, $3, $4 from projects p where p.id = $2 on conflict (network, xpub) do nothing`,
);

/** Stores a key for a project, to derive from `firstIndex` on; does nothing if a project of this network has it. */
export async function insertAccountKey(
  tx: Sql,
  { id, projectId, xpub, firstIndex }: { id: string; projectId: string; xpub: string; firstIndex: number },
): Promise<void> {
  await tx.run(insert, [id, projectId, xpub, firstIndex]);
}
