import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { createTestDatabase } from './postgres.ts';

const databases = await Promise.all([1, 2, 3, 4].map(() => createTestDatabase()));
afterAll(() => Promise.all(databases.map((database) => database.drop())));

test('each test database is its own, reached by its connections and by their connection strings', async () => {
  for (const [index, { connection, connectionString, owner, ownerString }] of databases.entries()) {
    for (const options of [owner, { connectionString: ownerString }, connection, { connectionString }]) {
      const client = new pg.Client(options);
      await client.connect();
      if (options === owner) {
        await client.query('create table only_here (value integer); grant select on only_here to public');
        await client.query('insert into only_here (value) values ($1)', [index]);
      }
      const { rows } = await client.query('select distinct value, current_database() as database from only_here');
      expect(rows).toEqual([{ value: index, database: connection.database }]);
      await client.end();
    }
  }
});
