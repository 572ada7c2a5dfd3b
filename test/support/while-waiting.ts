import type pg from 'pg';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { withClient } from './postgres-template.ts';
import { eventually } from './service.ts';

/** Starts `read`, commits `change` once the read has reached `table`, and returns the result of the read. */
export function whileWaiting<Read>(
  connection: PostgresConnection,
  table: string,
  read: () => Promise<Read>,
  change: (client: pg.Client) => Promise<unknown>,
): Promise<Read> {
  return withClient(connection, async (client) => {
    await client.query('begin');
    await client.query(`lock table ${table} in access exclusive mode`);
    const reading = read();
    await eventually(
      // Databases of other tests are copies, whose tables have the same oids.
      () =>
        client.query(
          `select from pg_locks where relation = $1::regclass and not granted
             and database = (select oid from pg_database where datname = current_database())`,
          [table],
        ),
      ({ rowCount }) => rowCount === 1,
    );
    await change(client);
    await client.query('commit');
    return reading;
  });
}
