import { once } from 'node:events';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { runCli, startProcess } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  startTestService,
  type TestServiceOptions,
  untilStatus,
} from '../support/service.ts';

const KEY = TEST_KEY_RING.current();
const text = (key: { bytes: Buffer }) => key.bytes.toString('base64');

async function startSealed(config: TestServiceOptions['config'] = {}) {
  const service = await startTestService({ config: { rowMacs: 'require', ...config } });
  onTestFinished(() => service.stop());
  const env = (keys: string) => ({
    ...{ DATABASE_URL: service.connectionString, DATABASE_OWNER_URL: service.ownerString },
    ...{ QUITTANCE_MASTER_KEY: keys, QUITTANCE_ROW_MACS: 'require' },
  });
  return { service, env };
}

test('a process with the role watcher alone has the master key, and seals what it writes', async () => {
  const { service, env } = await startSealed({ roles: ['api', 'webhooks'] });
  const watcher = startProcess(['start'], {
    env: {
      ...{ ...env(text(KEY)), QUITTANCE_ROLES: 'watcher', QUITTANCE_METRICS_PORT: 'off' },
      ...{ QUITTANCE_DEVNET_NODES: service.devnet.url, QUITTANCE_DEVNET_USDT: service.devnet.usdtContract },
    },
  });
  onTestFinished(async () => {
    const ended = once(watcher, 'exit');
    watcher.kill('SIGKILL');
    await ended;
  });
  await eventually(
    () => runSql(service, 'select from chain_cursors'),
    ({ length }) => length === 1,
  );
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  // Anything unsealed would be answered with 503.
  await untilStatus(service, body.invoiceId, 'PAID');
  const unsealed = 'select from transfers where mac is null union all select from events where mac is null';
  expect(await runSql(service, unsealed)).toEqual([]);
  expect(await runSql(service, `select from invoices where status = 'PAID' and paid_mac is not null`)).toHaveLength(1);
});

test('a rotation of the master key whose process is killed leaves rows of both keys, which are read, and is finished by the next one', async () => {
  const { service, env } = await startSealed();
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  await service.stopService();
  const newer = createMasterKey();
  const both = env(`${text(newer)},${text(KEY)}`);

  // It reaches the transfers after the projects and before the events, and waits for this lock.
  const holder = new pg.Client({ connectionString: service.ownerString });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query('begin; lock table transfers in exclusive mode');
  const rotating = startProcess(['master-key', 'rotate', '--json'], { env: both });
  const ended = once(rotating, 'exit');
  await eventually(
    () =>
      runSql(
        service,
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%transfers t set mac%'`,
      ),
    ({ length }) => length === 1,
  );
  rotating.kill('SIGKILL');
  expect((await ended)[1]).toBe('SIGKILL');
  await holder.query('rollback');

  const keysOf = async (table: string) =>
    (await runSql(service, `select distinct encode(substring(mac for 8), 'hex') as id from ${table}`)).map(
      ({ id }) => id,
    );
  expect([await keysOf('projects'), await keysOf('events')]).toEqual([[newer.id], [KEY.id]]);
  const check = (keys: NodeJS.ProcessEnv) => runCli(['ledger', 'seal', '--check', '--json'], { env: keys });
  expect(await check(both)).toMatchObject({ code: 0, json: { good: true } });

  expect(await runCli(['master-key', 'rotate', '--json'], { env: both })).toMatchObject({ code: 0 });
  expect(await keysOf('events')).toEqual([newer.id]);
  expect(await check(env(text(newer)))).toMatchObject({ code: 0, json: { good: true } });
});
