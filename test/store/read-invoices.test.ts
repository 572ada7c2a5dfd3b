import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import {
  call,
  createInvoice,
  createPatiently,
  createTestProject,
  type Json,
  startTestService,
  type TestService,
  untilServed,
} from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const read = (invoiceId: string, apiKey = service.project.apiKey) =>
  untilServed(() => call(`${service.url}/v1/invoices/${invoiceId}`, { headers: { 'x-api-key': apiKey } }));

test('of 200 reads at the same time each gets its own answer: its invoice, or nothing for one that is unknown or of another project', async () => {
  const created = await Promise.all(Array.from({ length: 100 }, () => createPatiently(service)));
  const ours = created.map(({ body }) => body);
  const stranger = await createTestProject(service.db);
  const revoked = await createTestProject(service.db);
  await read(ours[0].invoiceId, revoked.apiKey);
  await revokeApiKey(service.db, revoked.keyId, unixMs(service.clock.now()));
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, index) => {
      const { invoiceId } = ours[index % 100];
      if (index % 10 === 7) return read(encodeId('inv', randomUUID()));
      if (index % 10 === 8) return read(invoiceId, stranger.apiKey);
      if (index % 10 === 9) return read(invoiceId, revoked.apiKey);
      return read(invoiceId);
    }),
  );
  for (const [index, { status, body }] of answers.entries()) {
    if (index % 10 < 7) expect([status, body]).toEqual([200, ours[index % 100]]);
    else expect([status, body.code]).toEqual(index % 10 === 9 ? [401, 'UNAUTHENTICATED'] : [404, 'INVOICE_NOT_FOUND']);
  }
});

test.each([
  ['by id', 'invoiceId', ({ invoiceId }: Json) => `/${invoiceId}`],
  ['by external id', 'data.0.invoiceId', ({ externalId }: Json) => `?externalId=${externalId}`],
])('a key that was revoked a moment ago, and is still remembered, reads nothing %s', async (_, path, questionOf) => {
  const project = await createTestProject(service.db);
  const { body } = await createInvoice(service, { apiKey: project.apiKey });
  const ask = () => call(`${service.url}/v1/invoices${questionOf(body)}`, { headers: { 'x-api-key': project.apiKey } });
  expect((await ask()).body).toHaveProperty(path, body.invoiceId);
  await revokeApiKey(service.db, project.keyId, unixMs(service.clock.now()));
  const refused = await ask();
  expect([refused.status, refused.body.code]).toEqual([401, 'UNAUTHENTICATED']);
});
