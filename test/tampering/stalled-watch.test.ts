import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { guardWhileLeading } from '../../src/core/payments/watching.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { databaseOfTest } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

test('an alarm that is still being written when the check finishes is closed by the next check', async () => {
  const { db, client } = await databaseOfTest(3);
  const alarms = async () =>
    (await client.query(`select resolved_at is not null as closed from alarms where subject = 'sample'`)).rows;
  // An uncommitted alarm of the same kind makes the real one wait.
  await client.query('begin');
  await client.query(
    `insert into alarms (id, network, kind, subject, detail) values (gen_random_uuid(), 'devnet', 'watch-stalled', 'sample', '')`,
  );
  let finish: () => void = () => undefined;
  const stuck = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let checks = 0;
  const guard = guardWhileLeading(
    {
      db,
      network: 'devnet',
      now: () => unixMs(Date.now()),
      log: createLogger({ level: 'silent' }),
      isLeader: () => true,
    },
    { name: 'sample', pauseMs: 20, stallTickMs: 200 },
    async () => {
      await stuck;
      checks += 1;
    },
  );
  onTestFinished(() => guard.stop());
  await eventually(
    () =>
      client.query(
        `select from pg_locks where not granted and locktype = 'transactionid' and transactionid = pg_current_xact_id()::xid`,
      ),
    ({ rowCount }) => rowCount === 1,
  );
  finish();
  await eventually(
    () => checks,
    (count) => count > 2,
  );
  await client.query('rollback');
  await eventually(alarms, ([alarm]) => alarm?.closed === true);
  expect(await alarms()).toEqual([{ closed: true }]);
});
