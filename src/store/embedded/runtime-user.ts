import { randomBytes } from 'node:crypto';
import { RUNTIME_ROLE } from '../db/runtime-role.ts';
import { type PostgresConnection, withClient } from './connection.ts';

const USER = 'quittance_service';

/**
 * Makes the user as whom the service and commands work, in the group role that deploy/roles.sql grants to, and returns its connection.
 * Its password is a new one at each start: that of the superuser, which stands in a file, does not open it, nor the other way round.
 */
export async function makeRuntimeUser(owner: PostgresConnection): Promise<PostgresConnection> {
  const password = randomBytes(24).toString('base64url');
  await withClient(owner, (client) =>
    client.query(
      `do $$ begin
         if to_regrole('${RUNTIME_ROLE}') is null then create role ${RUNTIME_ROLE}; end if;
         if to_regrole('${USER}') is null then create role ${USER} in role ${RUNTIME_ROLE}; end if;
       end $$;
       alter role ${USER} with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password '${password}'`,
    ),
  );
  return { ...owner, user: USER, password };
}
