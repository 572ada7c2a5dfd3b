import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { listCapacityProjects } from '../../src/core/payments/measure-capacity.ts';
import { raiseAlarm } from '../../src/core/store/chain/alarms.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { selectProject } from '../../src/faces/operator/select.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { createInvoiceByHand } from '../../src/faces/operator/subjects/invoices.ts';
import {
  archiveProject,
  listProjects,
  unarchiveProject,
  updateProject,
} from '../../src/faces/operator/subjects/projects.ts';
import { runSql } from '../contract/sql.ts';
import {
  createInvoice,
  createTestProject,
  eventually,
  inboxOf,
  payExactly,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterEach(() => service.stop());

const actor = commandActor('ada');
const deps = () => ({ ...service, now: () => unixMs(service.clock.now()) });
const archive = () => archiveProject.run(deps(), actor, service.project);
const unarchive = () => unarchiveProject.run(deps(), actor, service.project);
const listed = async (isArchived: boolean) =>
  (await listProjects.run(deps(), actor, { isArchived })).data.map(({ projectId }) => projectId);

async function pay(invoiceId: string): Promise<void> {
  await payExactly(service, invoiceId);
  service.devnet.mineUntilSolid();
}

test('an archived project makes no invoice, and what it has is read, repeated, paid and told as before', async () => {
  const order = { idempotencyKey: 'attempt-1', body: { externalId: 'order-1' } };
  const { body: open } = await createInvoice(service, order);
  await archive();
  const refused = {
    status: 409,
    body: { code: 'PROJECT_ARCHIVED', detail: expect.stringContaining('project unarchive') },
  };
  expect(await createInvoice(service)).toMatchObject(refused);
  expect(await createInvoice(service)).toMatchObject(refused);
  const repeated = await createInvoice(service, order);
  expect([repeated.status, repeated.headers['idempotent-replayed'], repeated.body.invoiceId]).toEqual([
    ...[201, 'true', open.invoiceId],
  ]);
  expect((await readInvoice(service, open.invoiceId)).body).toMatchObject({ status: 'PENDING' });
  await pay(open.invoiceId);
  await untilStatus(service, open.invoiceId, 'PAID');
  await eventually(
    () => inboxOf(service, open.invoiceId),
    ({ length }) => length > 0,
  );
});

test('the database itself takes no invoice for it from a process that does not know yet', async () => {
  await createInvoice(service);
  await runSql(service, 'alter table projects disable trigger user');
  await runSql(service, 'update projects set archived_at = now()');
  expect((await createInvoice(service)).status).not.toBe(201);
});

test('put back it makes invoices again, also at a process that refused before; both are recorded, and once', async () => {
  expect(await archive()).toMatchObject({ isChanged: true, archivedAt: expect.any(String) });
  expect(await archive()).toMatchObject({ isChanged: false });
  expect((await createInvoice(service)).status).toBe(409);
  expect(await unarchive()).toMatchObject({ isChanged: true, archivedAt: null });
  expect(await unarchive()).toMatchObject({ isChanged: false });
  expect((await createInvoice(service)).status).toBe(201);
  const { data } = await listAudit.run(service, actor, readAuditFilter({}));
  const [subject] = [service.project.projectId];
  expect(data.map(({ action, subject }) => [action, subject]).slice(0, 2)).toEqual([
    ['project.unarchived', subject],
    ['project.archived', subject],
  ]);
});

test('it is left out of lists, capacity and the choice where one may be left out, and found by its id', async () => {
  const other = await createTestProject(service.db);
  const { projectId } = service.project;
  await raiseAlarm(service.db, 'devnet', {
    ...{ id: '0199a1c2-0000-7000-8000-000000000001', kind: 'capacity-low', subject: projectId, detail: 'low' },
  });
  await archive();
  expect([await listed(false), await listed(true)]).toEqual([[other.projectId], [projectId]]);
  expect((await selectProject(service.db, actor, undefined)).id).toBe(other.id);
  expect((await selectProject(service.db, actor, projectId)).id).toBe(service.project.id);
  const measured = await listCapacityProjects(service.db, 'devnet', null, unixMs(Date.now()));
  expect(measured.map(({ id }) => id)).toEqual([other.id]);
  const [alarm] = await runSql(service, `select resolved_at from alarms where kind = 'capacity-low'`);
  expect(alarm?.['resolved_at']).not.toBeNull();
  await archiveProject.run(deps(), actor, other);
  await expect(selectProject(service.db, actor, undefined)).rejects.toThrow('all projects are archived');
});

test('nobody makes an invoice for it by hand', async () => {
  await archive();
  const { projectId } = service.project;
  const making = createInvoiceByHand.run(
    { ...deps(), networks: ['devnet'], random: randomBytes, randomBelow: () => 0, publicUrl: () => service.url },
    actor,
    { projectId, idempotencyKey: 'once', note: '', externalId: 'by hand', requestedMicro: 5_000_000n as never },
  );
  await expect(making).rejects.toThrow('the project is archived');
});

test('settings are changed while it is archived, and who puts it back past Quittance makes its keys worth nothing', async () => {
  await archive();
  await updateProject.run(deps(), actor, { projectId: service.project.projectId, name: 'Closed shop' });
  expect((await createInvoice(service)).body).toMatchObject({ code: 'PROJECT_ARCHIVED' });
  await runSql(service, 'update projects set archived_at = null');
  // A cached key is valid for ten seconds, but the statement that creates an invoice reads none of its sealed data.
  service.clock.advance(11_000);
  expect((await createInvoice(service)).status).toBe(401);
});
