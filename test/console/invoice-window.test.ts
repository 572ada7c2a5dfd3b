import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listInvoices } from '../../src/faces/operator/subjects/invoices.ts';
import { startTestService } from '../support/service.ts';
import { writeHistory } from './console.ts';

test('what few invoices are is looked for beyond the first hundreds, and the page says among how many', async () => {
  const service = await startTestService();
  onTestFinished(() => service.stop());
  const { project } = service;
  await writeHistory(service, project, () => 20);
  const list = (status: 'PAID' | 'EXPIRED') =>
    listInvoices.run(
      { db: service.db, publicUrl: () => '' },
      commandActor('test'),
      listInvoices.read({ projectId: project.projectId, status } as never, unixMs(0)),
    );
  expect(await list('EXPIRED')).toEqual({ data: [], looked: 580, nextBefore: null });
  const paid = await list('PAID');
  expect([paid.data.length, paid.nextBefore]).toEqual([50, paid.data.at(-1)?.invoiceId]);
});
