import { randomBytes } from 'node:crypto';
import { utimes } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createAddressGuard, guardAdditions } from '../../src/core/payments/manifest/address-guard.ts';
import { readInstalled } from '../../src/core/payments/manifest/read-installed.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { runSql } from '../contract/sql.ts';
import { createInvoice, eventually } from '../support/service.ts';
import { startGuardedService } from './guarded-service.ts';

const hasNoSuch = (id: string) => (open: Record<string, string>) => !(id in open);

test('nothing is made under a surcharge or a policy that nobody signed; the alarm names the project, and it heals', async () => {
  const service = await startGuardedService();
  const { id, projectId } = service.project;
  const set = (text: string) => runSql(service, `update projects set ${text} where id = $1`, [id]);
  const known = { idempotencyKey: 'order-1', body: { externalId: 'order-1' } };
  const { body: first } = await createInvoice(service, known);
  for (const [planted, honest, says] of [
    [
      'max_surcharge_micro = 900000',
      'max_surcharge_micro = 10000',
      'surcharge limit is 0.900000 USDT, but the manifest allows at most 0.010000',
    ],
    [`policy = 'exact'`, `policy = 'tail'`, 'its policy is exact instead of tail'],
  ] as const) {
    await set(planted);
    // Touching the file triggers the next comparison, which is otherwise due every half minute.
    await utimes(service.manifestPath, new Date(), new Date());
    const open = await eventually(service.unvouched, (alarms) => projectId in alarms);
    expect(open[projectId]).toContain(says);
    // For some seconds, the key may be cached with the previous rule, which still allows orders.
    await service.restart();
    const refused = await createInvoice(service);
    expect(refused).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect(refused.body.detail).toContain("The project's settings differ from its signed manifest");
    expect(await createInvoice(service, known)).toMatchObject({
      ...{ status: 201, body: first, headers: { 'idempotent-replayed': 'true' } },
    });
    expect(await runSql(service, 'select 1 from invoices where payable_micro - requested_micro > 10000')).toEqual([]);
    await set(honest);
    await service.restart();
    await eventually(service.unvouched, hasNoSuch(projectId));
    expect((await createInvoice(service)).status).toBe(201);
  }
  // A smaller surcharge needs no signature.
  await set('max_surcharge_micro = 5000');
  await service.restart();
  expect((await createInvoice(service)).status).toBe(201);
});

test('in warn orders are made all the same, and it is an alarm', async () => {
  const service = await startGuardedService('warn');
  await runSql(service, 'update projects set max_surcharge_micro = 900000');
  await service.restart();
  expect((await createInvoice(service)).status).toBe(201);
  await eventually(service.unvouched, (alarms) => service.project.projectId in alarms);
});

test('an operator is told to sign first, and nothing is changed until then', async () => {
  const service = await startGuardedService();
  const open = async () => {
    const guard = createAddressGuard(service.settings, () => undefined);
    const read = await readInstalled(service.settings, { ledgerId: null, now: null });
    if (read.kind === 'ok') guard.install(read.installed);
    const connection = service.connectionString;
    const addressChecks = guardAdditions(guard);
    return openDatabase({ connection, poolSize: 1, applicationName: 'test', onError: () => undefined, addressChecks });
  };
  const raise = async () => {
    const db = await open();
    const deps = { db, now: () => unixMs(Date.now()), random: randomBytes };
    const { projectId } = service.project;
    const change = updateProject.run(deps, commandActor('anna', null), { projectId, maxSurchargeMicro: 20_000n });
    return change.finally(() => db.close());
  };
  const surcharge = () => runSql(service, 'select max_surcharge_micro::int from projects');
  await expect(raise()).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('Nothing was changed'),
  });
  expect(await surcharge()).toEqual([{ max_surcharge_micro: 10_000 }]);
  const entry = { addresses: service.project.addresses, maxSurcharge: '0.02', policy: 'tail' as const, xpubs: [] };
  await service.vouchFor([], { networks: { devnet: { [service.project.projectId]: entry } } });
  await raise();
  expect(await surcharge()).toEqual([{ max_surcharge_micro: 20_000 }]);
});
