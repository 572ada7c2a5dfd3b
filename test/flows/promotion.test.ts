import { afterEach, expect, test } from 'vitest';
import { cliActor } from '../../src/cli/terminal/terminal.ts';
import { notePromotion } from '../../src/core/payments/watch-guarantees.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { acknowledgeAlarms } from '../../src/faces/operator/subjects/chain.ts';
import { runSql } from '../contract/sql.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestService,
} from '../support/service.ts';

let service: TestService;
afterEach(() => service.stop());

const log = createLogger({ level: 'silent' });
/** Changes that the database refuses to record about a server other than itself. */
const note = (change: string) =>
  runSql(
    service,
    `set session_replication_role = 'replica';
     do $$ declare bounds text := (select pg_get_constraintdef(oid) from pg_constraint where conname = 'ledger_identity_timeline_bounds');
     begin
       alter table ledger_identity drop constraint ledger_identity_timeline_bounds;
       update ledger_identity set ${change};
       execute 'alter table ledger_identity add constraint ledger_identity_timeline_bounds ' || bounds;
     end $$`,
  );
const promoted = () => note('timeline = timeline - 1');
const alarms = async (network: 'devnet' | 'nile') =>
  (await findOpenAlarms(service.db, network)).filter(({ kind }) => kind === 'database-promoted');

test('each new timeline is told once on every network, at a start and while processes run, until an operator closes the alarm', async () => {
  service = await startTestService();
  await createTestProject(service.db, { network: 'nile' });
  expect(await alarms('devnet')).toEqual([]);
  await service.stopService();
  await promoted();
  await service.restart();
  for (const network of ['devnet', 'nile'] as const) {
    expect(await alarms(network), network).toMatchObject([{ subject: 'timeline 1', seenCount: 1 }]);
    const actor = cliActor({ env: {} } as never);
    const order = { network, kind: 'database-promoted', subject: null } as const;
    const deps = { db: service.db, now: () => Date.now() as never, networks: [network] };
    await acknowledgeAlarms.run(deps, actor, order);
    expect(await alarms(network), network).toEqual([]);
  }
  await service.stopService();
  await service.restart();
  expect(await alarms('devnet')).toEqual([]);
  await promoted();
  await Promise.all([1, 2, 3].map(() => notePromotion({ db: service.db, log })));
  expect(await alarms('devnet')).toMatchObject([{ subject: 'timeline 1' }]);
  expect((await createInvoice(service)).status).toBe(201);
});

test('a ledger that was found to lack acknowledged invoices makes every process unready, and none starts over it', async () => {
  service = await startTestService();
  const running = service;
  await note('database_oid = 0');
  const { body } = await eventually(
    () => call(`${running.metricsUrl}/readyz`),
    ({ status }) => status === 503,
  );
  expect(body.reason).toMatch(/lacks invoices that the previous primary had acknowledged/);
  await service.stopService();
  await expect(service.restart()).rejects.toMatchObject({ code: 'DATABASE_COPIED' });
});

test('the details of readyz say why Quittance refuses a server, and the public answer does not', async () => {
  service = await startTestService();
  const name = new URL(service.connectionString).pathname.slice(1);
  await runSql(service, `alter database ${name} set default_transaction_read_only = on`);
  await runSql(
    service,
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  await eventually(
    () => call(`${service.metricsUrl}/readyz`),
    ({ body }) => body.reason?.startsWith('Quittance refuses the database server: it is read-only') === true,
  );
  expect((await call(`${service.url}/readyz`)).body).toEqual({ status: 'unavailable' });
});
