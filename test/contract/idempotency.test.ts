import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { payScenario } from '../../src/developer/scenarios/pay-scenario.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import {
  createTestProject,
  eventually,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { created, expectProblem, get, order, post } from './ask.ts';
import { addKey } from './keys.ts';

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startTestService();
});
beforeEach(() => {
  key = `key-${randomUUID()}`;
});
afterAll(() => service.stop());

const send = (body: string | object, idempotencyKey = key) =>
  post(service, { body, headers: { 'idempotency-key': idempotencyKey } });

describe('a retry with the same key and an identical body is not a conflict', () => {
  test('it answers 201 with the same invoice and Idempotent-Replayed: true', async () => {
    const body = order();
    const first = await send(body);
    expect(first.headers['idempotent-replayed']).toBeUndefined();
    for (let i = 0; i < 3; i++) {
      const again = await send(body);
      expect(again.status).toBe(201);
      expect(again.headers['idempotent-replayed']).toBe('true');
      expect(again.body).toEqual(first.body);
    }
  });

  test('“identical body” means identical meaning: key order and whitespace do not matter', async () => {
    const { amount, asset, network, externalId } = order();
    const first = await send({ amount, asset, network, externalId });
    const variants = [
      JSON.stringify({ externalId, network, asset, amount }),
      JSON.stringify({ amount, asset, network, externalId }, null, 4),
      `\r\n\t ${JSON.stringify({ asset, amount, externalId, network })} \n`,
      JSON.stringify({ amount, asset, network, externalId }).replace('USDT', '\\u0055SDT'),
      JSON.stringify({ amount, asset, network, externalId }).replace('"amount"', '"\\u0061mount"'),
    ];
    for (const variant of variants) {
      const again = await send(variant);
      expect(again.status, variant).toBe(201);
      expect(again.body).toEqual(first.body);
      expect(again.headers['idempotent-replayed']).toBe('true');
    }
  });

  test('equal values are the same input: "10", "10.0" and "10.000000"', async () => {
    const body = order({ amount: '10' });
    const first = await send(body);
    for (const amount of ['10.0', '10.00', '10.000000', '10']) {
      const again = await send({ ...body, amount });
      expect(again.status, amount).toBe(201);
      expect(again.body).toEqual(first.body);
    }
  });

  test('a replay answers with the invoice’s current projection', async () => {
    const body = order();
    const { invoiceId } = (await send(body)).body;
    const invoice = await payableOf(service, invoiceId);
    const { usdtContract: usdt, fakeUsdtContract: fakeUsdt, multisendContract: multisend } = service.devnet;
    await payScenario(service.payer, { scenario: 'exact', contracts: { usdt, fakeUsdt, multisend }, invoice });
    service.devnet.mine();
    await untilStatus(service, invoiceId, 'CONFIRMING');
    expect((await send(body)).body).toMatchObject({ invoiceId, status: 'CONFIRMING' });
    service.devnet.mineUntilSolid();
    await untilStatus(service, invoiceId, 'PAID');
    const replay = await send(body);
    expect(replay.status).toBe(201);
    expect(replay.headers['idempotent-replayed']).toBe('true');
    expect(replay.body).toEqual((await get(service, `/v1/invoices/${invoiceId}`)).body);
    expect(replay.body.status).toBe('PAID');
  });

  test('a replay of an expired invoice makes no new one', async () => {
    const body = order();
    const { invoiceId, expiresAt } = (await send(body)).body;
    service.devnet.mine(1, { timestampMs: Math.ceil(Date.parse(expiresAt) / 3000) * 3000 + 3000 });
    // The chain's clock is now ahead. Ours follows, or new invoices would be too old.
    service.clock.advance(60 * 60_000);
    await untilStatus(service, invoiceId, 'EXPIRED');
    expect((await send(body)).body).toEqual({ ...(await get(service, `/v1/invoices/${invoiceId}`)).body });
  });
});

describe('IDEMPOTENCY_CONFLICT', () => {
  test.each([
    ['amount', { amount: '25.000001' }],
    ['externalId', { externalId: 'another' }],
  ])('the key was used before for a different %s', async (field, change) => {
    const body = order();
    const { invoiceId } = (await send(body)).body;
    const problem = expectProblem(await send({ ...body, ...change }), 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem).toMatchObject({ conflict: 'idempotencyKey', invoiceId, fields: [field] });
  });

  test('the error names all fields that differ', async () => {
    await send(order());
    const problem = expectProblem(await send(order({ amount: '26' })), 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem.conflict).toBe('idempotencyKey');
    expect(problem.fields.toSorted()).toEqual(['amount', 'externalId']);
  });

  test('the existing invoice is as it was, and the same key with the first body still answers it', async () => {
    const body = order();
    const first = await send(body);
    await send({ ...body, amount: '99' });
    expect((await send(body)).body).toEqual(first.body);
    expect((await get(service, `/v1/invoices/${first.body.invoiceId}`)).body).toEqual(first.body);
  });

  test('a new key with an externalId that is reserved is always a conflict, even with equal input', async () => {
    const body = order();
    const { invoiceId } = (await send(body)).body;
    const problem = expectProblem(await send(body, randomUUID()), 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem).toMatchObject({ conflict: 'externalId', invoiceId });
    expect(problem.fields).toEqual([]);
    const different = expectProblem(await send({ ...body, amount: '1' }, randomUUID()), 409, 'IDEMPOTENCY_CONFLICT');
    expect(different).toMatchObject({ conflict: 'externalId', invoiceId, fields: ['amount'] });
  });

  test('an integrator who reuses an id by mistake is not handed a paid invoice: the answer has no projection', async () => {
    const body = order();
    await send(body);
    const problem = expectProblem(await send(body, randomUUID()), 409, 'IDEMPOTENCY_CONFLICT');
    expect(problem).not.toHaveProperty('checkoutUrl');
    expect(problem.status).toBe(409);
  });

  test('when both rules are broken by two invoices, the key is what conflicts', async () => {
    const [first, second] = [order(), order()];
    const { invoiceId } = (await send(first)).body;
    await send(second, randomUUID());
    const problem = expectProblem(
      await send({ ...first, externalId: second['externalId'] }),
      409,
      'IDEMPOTENCY_CONFLICT',
    );
    expect(problem).toMatchObject({ conflict: 'idempotencyKey', invoiceId, fields: ['externalId'] });
  });

  test('it says what happened and what to do', async () => {
    const body = order();
    await send(body);
    const { detail } = expectProblem(await send({ ...body, amount: '26' }), 409, 'IDEMPOTENCY_CONFLICT');
    expect(detail).toMatch(/key/i);
  });
});

describe('a refused request uses up nothing', () => {
  test.each<[string, object | string, number]>([
    ['400 INVALID_JSON', '{', 400],
    ['400 INVALID_REQUEST', { amount: '0' }, 400],
    ['422 UNSUPPORTED_ASSET', { asset: 'USDC' }, 422],
    ['422 UNSUPPORTED_NETWORK', { network: 'ETH' }, 422],
  ])('after %s the same key and externalId create', async (_what, change, status) => {
    const body = order();
    const refused = await send(typeof change === 'string' ? change : { ...body, ...change });
    expect(refused.status).toBe(status);
    const reply = await send(body);
    expect(reply.status).toBe(201);
    expect(reply.headers['idempotent-replayed']).toBeUndefined();
  });

  test('a conflict by key leaves the externalId free', async () => {
    await send(order());
    const refused = order();
    expectProblem(await send(refused), 409, 'IDEMPOTENCY_CONFLICT');
    const reply = await send(refused, randomUUID());
    expect(reply.status).toBe(201);
    expect(reply.headers['idempotent-replayed']).toBeUndefined();
  });

  test('a conflict by externalId leaves the key free', async () => {
    const taken = order();
    await send(taken);
    const free = randomUUID();
    expectProblem(await send(taken, free), 409, 'IDEMPOTENCY_CONFLICT');
    const reply = await send(order(), free);
    expect(reply.status).toBe(201);
    expect(reply.headers['idempotent-replayed']).toBeUndefined();
  });

  test('a refused media type or size leaves the key free', async () => {
    const body = order();
    const headers = { 'idempotency-key': key };
    expect((await post(service, { body, headers: { ...headers, 'content-type': 'text/plain' } })).status).toBe(415);
    expect((await post(service, { body: ' '.repeat(20_000), headers })).status).toBe(413);
    expect((await send(body)).headers['idempotent-replayed']).toBeUndefined();
  });
});

describe('scope: the project', () => {
  test('it survives key rotation', async () => {
    const project = await createTestProject(service.db);
    const body = order();
    const headers = { 'idempotency-key': key };
    const first = await created(service, { project, body, headers });
    const rotated = { ...project, apiKey: (await addKey(service.db, project.id)).apiKey };
    await revokeApiKey(service.db, project.keyId, unixMs(Date.now()));
    const replay = await post(service, { project: rotated, body, headers });
    expect(replay.status).toBe(201);
    expect(replay.body).toEqual(first);
    const problem = expectProblem(
      await post(service, { project: rotated, body: { ...body, amount: '1' }, headers }),
      409,
      'IDEMPOTENCY_CONFLICT',
    );
    expect(problem.invoiceId).toBe(first.invoiceId);
  });

  test('another project’s keys and external ids do not matter', async () => {
    const other = await createTestProject(service.db);
    const body = order();
    const headers = { 'idempotency-key': key };
    const mine = await created(service, { body, headers });
    const theirs = await post(service, { project: other, body: { ...body, amount: '3' }, headers });
    expect(theirs.status).toBe(201);
    expect(theirs.headers['idempotent-replayed']).toBeUndefined();
    expect(theirs.body.invoiceId).not.toBe(mine.invoiceId);
  });

  test('keys are compared exactly', async () => {
    const replies = await Promise.all([key, key.toUpperCase(), `${key}.`].map((each) => send(order(), each)));
    expect(new Set(replies.map(({ body }) => body.invoiceId)).size).toBe(3);
  });
});

test('it is kept forever: also after years and a restart', async () => {
  const body = order();
  const first = await send(body);
  service.clock.advance(5 * 365 * 24 * 3600 * 1000);
  await service.restart();
  const again = await send(body);
  expect(again.status).toBe(201);
  expect(again.body.invoiceId).toBe(first.body.invoiceId);
  expect(again.headers['idempotent-replayed']).toBe('true');
  await eventually(
    () => send(body, randomUUID()),
    ({ status }) => status === 409,
  );
});
