import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';
import { ask, created, expectProblem, get, indistinct, sendRaw } from './ask.ts';

let service: TestService;
let other: TestProject;
let otherNetwork: TestProject;
let live: TestProject;
beforeAll(async () => {
  service = await startTestService();
  other = await createTestProject(service.db);
  otherNetwork = await createTestProject(service.db, { network: 'nile' });
  live = await createTestProject(service.db, { network: 'mainnet' });
});
afterAll(() => service.stop());

const unknownId = () => encodeId('inv', uuidV7(Date.now(), randomBytes(10)));

test('an id that is malformed, unknown, another project’s or another network’s is 404, and they are indistinguishable', async () => {
  const foreign = await created(service, { project: other });
  const nile = await created(service, { project: otherNetwork });
  const mainnet = await created(service, { project: live });
  const own = await created(service);
  const ids = [
    unknownId(),
    foreign.invoiceId,
    nile.invoiceId,
    mainnet.invoiceId,
    own.invoiceId.toUpperCase(),
    own.invoiceId.slice(4),
    `evt_${own.invoiceId.slice(4)}`,
    `${own.invoiceId}0`,
    own.invoiceId.slice(0, -1),
    `inv_8${own.invoiceId.slice(5)}`,
    `inv_${'i'.repeat(26)}`,
    'x',
    'null',
    '1',
    '%00',
    '%20',
    '%2F',
    '..%2f..%2fetc%2fpasswd',
    '%ff',
    '%',
    '%zz',
    '%F0%9F%98%80',
    "'%20or%201=1",
    '__proto__',
    `inv_${'0'.repeat(99)}`,
    'x'.repeat(500),
    'x'.repeat(4000),
    `${own.invoiceId}%0a`,
    `%20${own.invoiceId}`,
  ];
  const reference = await get(service, `/v1/invoices/${ids[0]}`);
  expectProblem(reference, 404, 'INVOICE_NOT_FOUND');
  for (const id of ids) {
    const reply = await get(service, `/v1/invoices/${id}`);
    expectProblem(reply, 404, 'INVOICE_NOT_FOUND');
    expect(indistinct(reply), id).toEqual(indistinct(reference));
  }
});

test('the three cases stay indistinguishable with expand=payment', async () => {
  const foreign = await created(service, { project: other });
  const replies = await Promise.all(
    [unknownId(), foreign.invoiceId, 'malformed'].map((id) => get(service, `/v1/invoices/${id}?expand=payment`)),
  );
  const [first] = replies.map(indistinct);
  for (const reply of replies) {
    expectProblem(reply, 404, 'INVOICE_NOT_FOUND');
    expect(indistinct(reply)).toEqual(first);
  }
});

test('the order of the response headers does not tell the cases apart either', async () => {
  const foreign = await created(service, { project: other });
  const names = async (id: string) => {
    const head = ['Host: localhost', 'Connection: close', `X-Api-Key: ${service.project.apiKey}`].join('\r\n');
    const reply = await sendRaw(service.url, `GET /v1/invoices/${id} HTTP/1.1\r\n${head}\r\n\r\n`);
    expect(reply.status).toBe(404);
    return Object.keys(reply.headers);
  };
  const reference = await names(unknownId());
  expect(await names(foreign.invoiceId)).toEqual(reference);
  expect(await names('malformed')).toEqual(reference);
});

test('every invoice belongs to exactly one project: only its own key reads it', async () => {
  const foreign = await created(service, { project: other });
  expect((await get(service, `/v1/invoices/${foreign.invoiceId}`, other)).body).toEqual(foreign);
  for (const project of [service.project, otherNetwork, live]) {
    expectProblem(await get(service, `/v1/invoices/${foreign.invoiceId}`, project), 404, 'INVOICE_NOT_FOUND');
  }
});

test('reading needs the header X-Api-Key of the owning project and nothing else', async () => {
  const invoice = await created(service);
  expectProblem(await ask(`${service.url}/v1/invoices/${invoice.invoiceId}`), 401, 'UNAUTHENTICATED');
  const inQuery = `${service.url}/v1/invoices/${invoice.invoiceId}?apiKey=${service.project.apiKey}`;
  expectProblem(await ask(inQuery), 401, 'UNAUTHENTICATED');
  const bearer = { authorization: `Bearer ${service.project.apiKey}` };
  const reply = await ask(`${service.url}/v1/invoices/${invoice.invoiceId}`, { headers: bearer });
  expectProblem(reply, 401, 'UNAUTHENTICATED');
});

test('what only an owner may see is never kept by a cache', async () => {
  const invoice = await created(service);
  const reply = await get(service, `/v1/invoices/${invoice.invoiceId}`);
  expect(reply.headers['cache-control']).toContain('no-store');
});

test('HEAD answers what GET answers, without the body', async () => {
  const invoice = await created(service);
  const headers = { 'x-api-key': service.project.apiKey };
  const reply = await ask(`${service.url}/v1/invoices/${invoice.invoiceId}`, { method: 'HEAD', headers });
  expect({ status: reply.status, text: reply.text }).toEqual({ status: 200, text: '' });
  const missing = await ask(`${service.url}/v1/invoices/${unknownId()}`, { method: 'HEAD', headers });
  expect({ status: missing.status, text: missing.text }).toEqual({ status: 404, text: '' });
});
