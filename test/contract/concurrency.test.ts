import { randomBytes, randomUUID } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { isCodeWord } from '../../src/core/domain/policy.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import {
  createTestProject,
  startTestService,
  type TestProject,
  type TestService,
  untilServed,
} from '../support/service.ts';
import { expectProblem, get, order, type Post, post, type Reply } from './ask.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));

/** Repeats one request unchanged while it gets 503. */
function postPatiently(request: Post): Promise<Reply> {
  const headers = { 'idempotency-key': randomUUID(), ...request.headers };
  return untilServed(() => post(service, { ...request, headers }));
}

async function countInvoices(project: TestProject): Promise<number> {
  const [row] = await runSql(service, 'select count(*)::int as n from invoices where project_id = $1', [project.id]);
  return Number(row?.['n']);
}

test('64 concurrent requests with one key: one creates, the others answer with the same invoice', async () => {
  const project = await createTestProject(service.db);
  const body = order();
  const headers = { 'idempotency-key': randomUUID() };
  const replies = await Promise.all(times(64, () => postPatiently({ project, body, headers })));
  expect(replies.map(({ status }) => status)).toEqual(times(64, () => 201));
  expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
  expect(replies.filter((reply) => reply.headers['idempotent-replayed'] === undefined)).toHaveLength(1);
  expect(await countInvoices(project)).toBe(1);
});

test('64 concurrent requests with one key and different bodies: one creates, the others conflict', async () => {
  const project = await createTestProject(service.db);
  const headers = { 'idempotency-key': randomUUID() };
  const replies = await Promise.all(times(64, () => postPatiently({ project, body: order(), headers })));
  const made = replies.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  for (const reply of replies.filter(({ status }) => status !== 201)) {
    const problem = expectProblem(reply, 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem).toMatchObject({ conflict: 'idempotencyKey', invoiceId: made[0]?.body.invoiceId });
  }
  expect(await countInvoices(project)).toBe(1);
});

test('64 concurrent requests with one externalId and different keys: one creates, the others conflict', async () => {
  const project = await createTestProject(service.db);
  const body = order();
  const replies = await Promise.all(times(64, () => postPatiently({ project, body })));
  const made = replies.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  for (const reply of replies.filter(({ status }) => status !== 201)) {
    const problem = expectProblem(reply, 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem).toMatchObject({ conflict: 'externalId', invoiceId: made[0]?.body.invoiceId });
  }
  expect(await countInvoices(project)).toBe(1);
});

test('crossed keys and external ids never deadlock and never fail', async () => {
  const [keys, ids] = [times(4, () => randomUUID()), times(4, () => randomUUID())];
  const requests = times(64, (i) => ({
    headers: { 'idempotency-key': keys[i % 4] ?? '' },
    body: order({ externalId: ids[Math.floor(i / 4) % 4], amount: '4' }),
  }));
  const replies = await Promise.all(requests.map(postPatiently));
  expect(replies.map(({ status }) => status).filter((status) => status !== 201 && status !== 409)).toEqual([]);
  const made = new Set(replies.filter(({ status }) => status === 201).map(({ body }) => body.invoiceId));
  expect(made.size).toBeGreaterThan(0);
  expect(made.size).toBeLessThanOrEqual(4);
});

test('200 concurrent invoices of one amount have 200 distinct payable amounts, all code words within the surcharge', async () => {
  const project = await createTestProject(service.db);
  const replies = await Promise.all(times(200, () => postPatiently({ project, body: order({ amount: '25.00' }) })));
  expect(replies.map(({ status }) => status)).toEqual(times(200, () => 201));
  const payables = await Promise.all(
    replies.map(async ({ body }) => {
      const path = `/v1/invoices/${body.invoiceId}?expand=payment`;
      const { payment } = (await untilServed(() => get(service, path, project))).body;
      expect(payment.address).toBe(project.addresses[0]);
      return BigInt(payment.payableAmount.replace('.', ''));
    }),
  );
  expect(new Set(payables).size).toBe(200);
  for (const payable of payables) {
    expect(payable >= 25_000_000n && payable < 25_010_000n && isCodeWord(payable), String(payable)).toBe(true);
  }
});

describe('when no pair is free: 409 AMOUNT_UNAVAILABLE', () => {
  /** A range of 100 micro-USDT above a round amount contains exactly nine code words. */
  const tiny = () => createTestProject(service.db, { maxSurchargeMicro: 100n });

  test('all of the capacity is given out, under any concurrency, and then no more', async () => {
    const project = await tiny();
    const replies = await Promise.all(times(24, () => postPatiently({ project, body: order({ amount: '3' }) })));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(9);
    for (const reply of replies.filter(({ status }) => status !== 201)) expectProblem(reply, 409, 'AMOUNT_UNAVAILABLE');
    expect(await countInvoices(project)).toBe(9);
  });

  test('it says what the operator can do, and uses up nothing: after an address is added the same request creates', async () => {
    const project = await tiny();
    await fill(project);
    const body = order({ amount: '3' });
    const headers = { 'idempotency-key': randomUUID() };
    for (let i = 0; i < 2; i++) {
      const problem = expectProblem(await post(service, { project, body, headers }), 409, 'AMOUNT_UNAVAILABLE');
      expect(problem.detail).toMatch(/address/i);
      expect(problem.detail).toContain('3');
    }
    expect(await countInvoices(project)).toBe(9);
    const address = await addAddress(project);
    const reply = await post(service, { project, body, headers });
    expect(reply.status, reply.text).toBe(201);
    expect(reply.headers['idempotent-replayed']).toBeUndefined();
    const read = await get(service, `/v1/invoices/${reply.body.invoiceId}?expand=payment`, project);
    expect(read.body.payment.address).toBe(address);
  });

  test('replays and other amounts are still answered', async () => {
    const project = await tiny();
    const [first] = await fill(project);
    expect((await post(service, { project, ...first })).status).toBe(201);
    expect((await post(service, { project, body: order({ amount: '4' }) })).status).toBe(201);
  });

  test('a conflict is told before a lack of amounts', async () => {
    const project = await tiny();
    const [first] = await fill(project);
    const reply = await post(service, { project, body: { ...first?.body } });
    expectProblem(reply, 409, 'IDEMPOTENCY_CONFLICT');
  });

  test('a project without an address has no pair at all', async () => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    const problem = expectProblem(await post(service, { project }), 409, 'AMOUNT_UNAVAILABLE');
    expect(problem.detail).toMatch(/address/i);
  });

  test('addresses are shared: each further one adds the same capacity', async () => {
    const project = await createTestProject(service.db, { maxSurchargeMicro: 100n, addressCount: 3 });
    const replies = await Promise.all(times(40, () => postPatiently({ project, body: order({ amount: '3' }) })));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(27);
  });

  async function fill(project: TestProject) {
    const requests = times(9, () => ({ body: order({ amount: '3' }), headers: { 'idempotency-key': randomUUID() } }));
    for (const request of requests) expect((await post(service, { project, ...request })).status).toBe(201);
    return requests;
  }

  async function addAddress(project: TestProject): Promise<string> {
    const account = accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false));
    const address = accountToAddress(account);
    const id = uuidV7(Date.now(), randomBytes(10));
    expect(await insertAddress(service.db, { id, projectId: project.id, account, address })).toBe(true);
    return address;
  }
});
