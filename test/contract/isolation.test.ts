import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestProject, startTestService, type TestProject, type TestService } from '../support/service.ts';
import { created, expectProblem, get, order, post } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
let nile: TestProject;
let live: TestProject;
beforeAll(async () => {
  service = await startTestService();
  nile = await createTestProject(service.db, { network: 'nile' });
  live = await createTestProject(service.db, { network: 'mainnet' });
});
afterAll(() => service.stop());

test('main-network and test-network use are isolated: the same key and externalId make an invoice in each', async () => {
  const body = order();
  const headers = { 'idempotency-key': randomUUID() };
  const made = [];
  for (const project of [service.project, nile, live]) {
    const reply = await post(service, { project, body, headers });
    expect(reply.status, reply.text).toBe(201);
    expect(reply.headers['idempotent-replayed']).toBeUndefined();
    made.push(reply.body);
  }
  expect(new Set(made.map(({ invoiceId }) => invoiceId)).size).toBe(3);
  for (const [index, project] of [service.project, nile, live].entries()) {
    const found = await get(service, `/v1/invoices?externalId=${body['externalId']}`, project);
    expect(found.body.data).toEqual([made[index]]);
  }
});

test('a conflict names the existing invoice only to its own project', async () => {
  const body = order();
  const headers = { 'idempotency-key': randomUUID() };
  const theirs = await created(service, { project: nile, body, headers });
  const reply = await post(service, { body: { ...body, amount: '7' }, headers });
  expect(reply.status).toBe(201);
  expect(reply.text).not.toContain(theirs.invoiceId);
});

/** A foreign key, or one of our rules that is checked before it: 23503 and 23514. */
const REFUSED = expect.stringMatching(/^23(503|514)$/);

describe('guaranteed by composite foreign keys, not by care', () => {
  test('no row of one network can be made to point into another, not even in SQL', async () => {
    const own = await createTestProject(service.db);
    await created(service, { project: own });
    const attempts = [
      ['update projects set network = $1 where id = $2', ['mainnet', own.id]],
      ['update api_keys set network = $1 where project_id = $2', ['mainnet', own.id]],
      ['update addresses set network = $1 where project_id = $2', ['mainnet', own.id]],
      ['update invoices set network = $1 where project_id = $2', ['mainnet', own.id]],
      ['update api_keys set project_id = $1 where project_id = $2', [live.id, own.id]],
      ['update addresses set project_id = $1, position = 77 where project_id = $2', [live.id, own.id]],
      ['update invoices set project_id = $1 where project_id = $2', [live.id, own.id]],
      ['update webhook_endpoints set network = $1 where project_id = $2', ['mainnet', service.project.id]],
    ] as const;
    for (const [text, values] of attempts) {
      await expect(runSql(service, text, [...values]), text).rejects.toMatchObject({ code: REFUSED });
    }
  });
});

test('no invoice of one network can be reached with a key of another', async () => {
  const { invoiceId } = await created(service, { project: nile });
  expectProblem(await get(service, `/v1/invoices/${invoiceId}`), 404, 'INVOICE_NOT_FOUND');
  expectProblem(await get(service, `/v1/invoices/${invoiceId}`, live), 404, 'INVOICE_NOT_FOUND');
});
