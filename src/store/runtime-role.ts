import { readFile } from 'node:fs/promises';
import type { Sql } from './database.ts';
import { statement } from './statement.ts';

/** The group role of deploy/roles.sql. Its members may run the service and own nothing. */
export const RUNTIME_ROLE = 'quittance_runtime';

const GRANTS = new URL('../../deploy/roles.sql', import.meta.url);

/** Grants the group role what this release needs, where there is that role: whoever has none runs the service as the owner. */
export async function grantRuntimeRole(tx: Sql): Promise<void> {
  const [found] = await tx.run(role, [RUNTIME_ROLE]);
  if (found?.is_there === true) await tx.script(await readFile(GRANTS, 'utf8'));
}

const role = statement('runtime-role', { is_there: 'bool' }, 'select to_regrole($1) is not null as is_there');

const ownership = statement(
  'schema-ownership',
  { is_made: 'bool', is_owner: 'bool', may_read: 'bool' },
  `select c.oid is not null as is_made,
     coalesce(pg_has_role(c.relowner, 'usage'), has_schema_privilege(current_schema(), 'create'), false) as is_owner,
     coalesce(has_table_privilege(c.oid, 'select'), false) as may_read
   from (values (to_regclass('schema_migrations'))) t (oid) left join pg_class c using (oid)`,
);

/** What a user may do with the tables; `isOwner` also says of one who meets none that it may make them. */
type Ownership = { isMade: boolean; isOwner: boolean; mayRead: boolean };

/** Whether the tables are there, and what this user may do with them. */
export async function findOwnership(db: Sql): Promise<Ownership> {
  const [row] = await db.run(ownership, []);
  return { isMade: row?.is_made === true, isOwner: row?.is_owner === true, mayRead: row?.may_read === true };
}
