import { readFile } from 'node:fs/promises';
import { PACKAGE_ROOT } from '../../runtime/package.ts';
import type { Sql } from './database.ts';
import { answerOf, rowOf } from './rows-of.ts';

/** The group role in deploy/roles.sql. Its members may run the service but own nothing. */
export const RUNTIME_ROLE = 'quittance_runtime';

const GRANTS = new URL('deploy/roles.sql', PACKAGE_ROOT);

/**
 * Grants the group role the rights that this release needs, if the role exists. If the role doesn't exist, the service runs as the owner.
 */
export async function grantRuntimeRole(tx: Sql): Promise<void> {
  const found = await findRole(tx, RUNTIME_ROLE);
  if (found?.isThere) await tx.script(await readFile(GRANTS, 'utf8'));
}

const findRole = rowOf(
  'runtime-role',
  { isThere: 'bool' },
  'select to_regrole($1) is not null as is_there',
  (name: string) => [name],
);

/**
 * Returns whether the tables exist, and the user's rights to them. If there are no tables, `isOwner` says whether the user may create them.
 */
export const findOwnership = answerOf(
  'schema-ownership',
  { isMade: 'bool', isOwner: 'bool', mayRead: 'bool' },
  `select c.oid is not null as is_made,
     coalesce(pg_has_role(c.relowner, 'usage'), has_schema_privilege(current_schema(), 'create'), false) as is_owner,
     coalesce(has_table_privilege(c.oid, 'select'), false) as may_read
   from (values (to_regclass('schema_migrations'))) t (oid) left join pg_class c using (oid)`,
  () => [],
  ([row]) => row ?? { isMade: false, isOwner: false, mayRead: false },
);
