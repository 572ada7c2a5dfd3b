import type { AccountHex, TronAddress } from '../tron/address.ts';
import type { Sql } from './database.ts';
import { type Row, statement } from './statement.ts';

const columns = {
  id: 'uuid',
  address: 'text',
  position: 'int4',
  created_at: 'timestamptz',
  retired_at: 'timestamptz?',
} as const;

export type ListedAddress = Row<typeof columns>;

// The project row is locked so that two additions at once cannot take the same position.
const insert = statement(
  'address-insert',
  { id: 'uuid' },
  `with project as (select id, network from projects where id = $2 for update)
   insert into addresses (id, project_id, network, account, address, position)
   select $1, p.id, p.network, $3, $4,
     (select coalesce(max(position), 0) + 1 from addresses where project_id = p.id)
   from project p
   on conflict (network, account) do nothing
   returning id`,
);

/** Adds a receiving address at the end of the project's list; `false` if a project of this network has it already. */
export async function insertAddress(
  db: Sql,
  entry: { id: string; projectId: string; account: AccountHex; address: TronAddress },
): Promise<boolean> {
  const account = Buffer.from(entry.account, 'hex');
  return (await db.run(insert, [entry.id, entry.projectId, account, entry.address])).length === 1;
}

const owner = statement(
  'address-owner',
  { project_id: 'uuid' },
  `select a.project_id from addresses a join projects p on p.network = a.network
   where p.id = $1 and a.account = $2`,
);

/** The project that has this account on the network of `projectId`, or `null`. */
export async function findAddressOwner(db: Sql, projectId: string, account: AccountHex): Promise<string | null> {
  const [row] = await db.run(owner, [projectId, Buffer.from(account, 'hex')]);
  return row?.project_id ?? null;
}

const list = statement(
  'address-list',
  columns,
  `select ${Object.keys(columns).join(', ')} from addresses where project_id = $1 order by position limit 10000`,
);

/** The project's addresses in allocation order, at most 10,000. */
export async function listAddresses(db: Sql, projectId: string): Promise<ListedAddress[]> {
  return db.run(list, [projectId]);
}
