import { expect, onTestFinished, test } from 'vitest';
import { claimLedger } from '../../src/core/store/db/ledger-identity.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { makeRuntimeUser } from '../../src/core/store/embedded/embedded.ts';
import { runSql } from '../contract/sql.ts';
import { createRawServer } from '../support/oldest-postgres.ts';
import { createTestDatabase, openTestDatabase } from '../support/postgres.ts';
import { createTemplate, withClient } from '../support/postgres-template.ts';
import { eventually } from '../support/service.ts';

const create = unlistedStatement(
  '',
  { checkoutToken: 'text' },
  `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro,
     checkout_token, created_at, expires_at)
   select gen_random_uuid(), a.project_id, a.network, a.id, 'order', 'order', 1, 1, lpad('order', 16, '0'), now(), now() from addresses a
   returning checkout_token`,
);
const ask = unlistedStatement('', { one: 'int4' }, 'select 1 as one');

test('a real standby that is promoted without an acknowledged invoice is marked before its first checkpoint', async () => {
  const server = await createRawServer();
  onTestFinished(() => server.remove());
  let stop = await server.start(server.data);
  onTestFinished(() => stop());
  const connection = await makeRuntimeUser(server.owner);
  await createTemplate(server.owner, connection);
  const database = await createTestDatabase({ owner: server.owner, connection });
  const db = openTestDatabase(database);
  onTestFinished(() => db.close());
  await claimLedger(db, { isSealed: false });
  await runSql(
    database,
    `insert into projects (id, name, network) values ('018f4c1e-0000-7000-8000-000000000000', 'shop', 'devnet');
     insert into addresses (id, project_id, network, account, address, position)
     select gen_random_uuid(), id, network, account, tron_address(account), 1
     from projects, (values (decode(repeat('4a', 20), 'hex'))) _ (account)`,
  );
  await stop();
  const standby = await server.copyToStandby();
  stop = await server.start(server.data);
  await eventually(
    () => db.run(create, []).catch(() => []),
    (rows) => rows.length === 1,
  );
  await stop();
  stop = await server.start(standby);

  await withClient(server.owner, async (client) => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity where backend_type = 'checkpointer'`,
    );
    const pid = rows[0]?.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    try {
      await client.query('select pg_promote()');
      const { rows: control } = await client.query('select timeline_id from pg_control_checkpoint()');
      expect(control).toEqual([{ timeline_id: 1 }]);
      await expect(db.run(ask, [])).rejects.toMatchObject({
        code: 'DATABASE_UNAVAILABLE',
        message: expect.stringContaining('lacks 1 of the last 1 acknowledged invoices'),
      });
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  });
  const restarted = openTestDatabase(database);
  onTestFinished(() => restarted.close());
  await expect(claimLedger(restarted, { isSealed: false })).rejects.toMatchObject({
    code: 'DATABASE_COPIED',
    message: expect.stringContaining('lacks invoices'),
  });
});
