import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OLDEST_POSTGRES } from '../../src/core/store/db/migrate.ts';
import { allStatements } from '../../src/core/store/db/statement.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { importStatements } from '../support/import-statements.ts';
import { findOldestPostgres, startOldestPostgres } from '../support/oldest-postgres.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { createInvoice, payableOf, startTestService, untilStatus } from '../support/service.ts';

const packageRoot = findOldestPostgres();

// npm installs it only on Linux x64.
describe.skipIf(packageRoot === null)('with the oldest PostgreSQL that works', () => {
  let postgres: Awaited<ReturnType<typeof startOldestPostgres>>;
  beforeAll(async () => {
    postgres = await startOldestPostgres(packageRoot ?? '');
  });
  afterAll(() => postgres.stop());

  test('it is that release, and every statement is prepared on the schema that the migrations make', async () => {
    await importStatements();
    const database = await createTestDatabase(postgres);
    await withClient(database.connection, async (client) => {
      const { rows } = await client.query('show server_version_num');
      expect(Math.floor(Number(rows[0].server_version_num) / 10_000)).toBe(OLDEST_POSTGRES);
      for (const [index, { text }] of allStatements.entries()) await client.query(`prepare s${index} as ${text}`);
    });
    const migrated = await runCli(['migrate'], { env: { DATABASE_URL: database.ownerString } });
    expect(migrated).toMatchObject({ code: 0 });
    await database.drop();
  });

  test('an order is created, paid on the chain and PAID', async () => {
    const service = await startTestService({ server: postgres, config: { rowMacs: 'require' } });
    try {
      const { body } = await createInvoice(service);
      const { address: to, amountMicro } = await payableOf(service, body.invoiceId);
      await service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });
      service.devnet.mineUntilSolid();
      await untilStatus(service, body.invoiceId, 'PAID');
    } finally {
      await service.stop();
    }
  });
});

test('an older server is refused before anything is made in it, with exit code 2', async () => {
  const database = await createTestDatabase();
  const { database: name } = database.owner;
  await runSql(database, 'create schema older; drop table schema_migrations cascade');
  await runSql(
    database,
    `create function older.current_setting(text) returns text language sql as
       $$ select case $1 when 'server_version' then '14.9' when 'server_version_num' then '140009' else pg_catalog.current_setting($1) end $$;
     alter database ${name} set search_path = older, pg_catalog, public`,
  );
  const { code, stderr } = await runCli(['migrate'], { env: { DATABASE_URL: database.ownerString } });
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('is PostgreSQL 14.9, but Quittance requires 15 or newer'),
  ]);
  await database.drop();
});
