import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { StoredRate } from '../../src/core/store/outbox/adapter-orders.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { explainSubject } from '../../src/faces/operator/explain/explain.ts';
import { perform } from '../../src/faces/operator/operation.ts';
import {
  disableAdapter,
  enableAdapter,
  listAdapters,
  storeAdapter,
} from '../../src/faces/operator/subjects/adapters.ts';
import { showInvoice } from '../../src/faces/operator/subjects/invoices.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createTestProject,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { ask, expectProblem, fieldsOf, get } from './ask.ts';
import { addKey } from './keys.ts';
import { runSql } from './sql.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { roles: ['api', 'watcher'], rowMacs: 'require' } });
});
afterAll(() => service.stop());

const FIXED = { rateSource: null, rateMinMicro: 1n, rateMaxMicro: 10n ** 12n, readMicro: null, readAt: null };
const SOURCE = { url: 'https://rates.example/eur?key=1', path: '/eur', timePath: null, min: '0.8', max: '1.2' };
const READ = {
  rateSource: JSON.stringify({ ...SOURCE, maxAgeMs: 60_000 }),
  rateMinMicro: 800_000n,
  rateMaxMicro: 1_200_000n,
};

/** Sets the rate of a currency as the command does. */
async function setRate(project: TestProject, currency: string, rate: StoredRate): Promise<string> {
  const id = uuidV7(Date.now(), randomBytes(10));
  const deps = { keyRing: TEST_KEY_RING, now: unixMs(Date.now()), random: randomBytes };
  const row = { ...rate, id, projectId: project.id, kind: 'price', currency, secret: 'x'.repeat(32) } as const;
  await service.db.transaction((tx) => storeAdapter(tx, deps, row));
  return id;
}

const post = (project: TestProject, body: object, key: string = randomUUID()) =>
  ask(`${service.url}/v1/invoices`, {
    method: 'POST',
    headers: { 'x-api-key': project.apiKey, 'idempotency-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ asset: 'USDT', network: 'TRON', externalId: key, ...body }),
  });
const paymentOf = async (project: TestProject, invoiceId: string): Promise<Json> =>
  (await get({ ...service, project }, `/v1/invoices/${invoiceId}?expand=payment`)).body.payment;
const countInvoices = async ({ id }: TestProject) =>
  (await runSql(service, 'select count(*)::int as n from invoices where project_id = $1', [id]))[0]?.['n'];

const euros = (amount: string) => ({ price: { amount, currency: 'EUR' } });

test('a price is converted at the rate of the project, and read with the rate, its time and its source', async () => {
  const project = await createTestProject(service.db);
  await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
  const at = unixMs(service.clock.now() - 5000);
  await setRate(project, 'USD', { ...READ, rateMicro: 1_000_000n, readMicro: 999_000n, readAt: at });
  const made = await post(project, euros('19.99'));
  expect(made.status, made.text).toBe(201);
  expect(Object.keys(made.body).sort()).toEqual(['checkoutUrl', 'expiresAt', 'externalId', 'invoiceId', 'status']);
  expect(await paymentOf(project, made.body.invoiceId)).toMatchObject({
    requestedAmount: '21.728261',
    price: { amount: '19.990000', currency: 'EUR', rate: '0.920000', rateAt: null, rateSource: 'fixed' },
  });
  const dollars = await post(project, { price: { amount: '10', currency: 'USD' }, description: 'Tea' });
  expect(await paymentOf(project, dollars.body.invoiceId)).toMatchObject({
    requestedAmount: '10.010011',
    price: { rate: '0.999000', rateAt: new Date(at).toISOString(), rateSource: 'https://rates.example' },
  });
  const plain = await post(project, { amount: '10' });
  expect(await paymentOf(project, plain.body.invoiceId)).not.toHaveProperty('price');
});

test('people see the price with its rate in one line, and the payer sees the price beside the amount', async () => {
  const project = await createTestProject(service.db);
  const at = unixMs(service.clock.now() - 5000);
  await setRate(project, 'EUR', { ...READ, rateMicro: 920_000n, readMicro: 920_000n, readAt: at });
  const [made, plain] = [await post(project, euros('25')), await post(project, { amount: '25' })];
  const readAt = new Date(at).toISOString();
  const price = {
    ...{ amount: '25.000000', currency: 'EUR', rate: '0.920000' },
    ...{ rateAt: readAt, rateSource: 'https://rates.example' },
  };
  const line = `25.00 EUR at 0.92 EUR for 1 USDT, read ${readAt} from https://rates.example`;
  const deps = { db: service.db, now: () => unixMs(service.clock.now()), publicUrl: async () => service.url } as never;
  const { projectId } = project;
  const look = async ({ body: { invoiceId, checkoutUrl } }: { body: Json }) => {
    const invoice = await showInvoice.run(deps, commandActor('Olga'), { projectId, invoiceId });
    const { subject, fields } = await explainSubject(deps, commandActor('Olga'), { projectId, text: invoiceId });
    const page = await (await fetch(checkoutUrl)).text();
    return { invoice, printed: String(showInvoice.print?.(invoice, null as never).text), subject, fields, page };
  };
  const priced = await look(made);
  expect(priced.invoice.price).toEqual(price);
  expect(priced.printed).toMatch(new RegExp(`^price +${line.replaceAll('.', '\\.')}$`, 'm'));
  expect(priced.subject['price']).toEqual(price);
  expect(priced.fields).toContainEqual(['price', line]);
  expect(priced.page).toContain('<p class="hint"><bdi dir="ltr">25.00 EUR</bdi></p>');
  const unpriced = await look(plain);
  expect([unpriced.invoice.price, unpriced.subject['price']]).toEqual([null, undefined]);
  expect(`${unpriced.printed}${JSON.stringify(unpriced.fields)}${unpriced.page}`).not.toMatch(/\bprice\b|EUR/);
});

test('a repeat is answered with the same invoice at any rate, and also without one', async () => {
  const project = await createTestProject(service.db);
  const id = await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
  const key = randomUUID();
  const first = await post(project, euros('25'), key);
  await runSql(service, "update api_keys set revoked_at = '2026-01-01Z' where id = $1", [id]);
  const again = await post(project, euros('25.00'), key);
  expect([again.status, again.body, again.headers['idempotent-replayed']]).toEqual([201, first.body, 'true']);
  await setRate(project, 'EUR', { ...FIXED, rateMicro: 500_000n });
  expect((await post(project, euros('25.000'), key)).body).toEqual(first.body);
  const differing = async (body: object) => {
    const reply = await post(project, body, key);
    expectProblem(reply, 409, 'IDEMPOTENCY_CONFLICT');
    return reply.body.fields;
  };
  expect(await differing(euros('25.01'))).toEqual(['price']);
  expect(await differing({ price: { amount: '25', currency: 'USD' } })).toEqual(['price']);
  expect(await differing({ amount: '27.173914' })).toEqual(['price']);
  expect(await countInvoices(project)).toBe(1);
});

test('many at once with one key get one invoice', async () => {
  const project = await createTestProject(service.db);
  await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
  const key = randomUUID();
  const made = await Promise.all(Array.from({ length: 8 }, () => post(project, euros('31.07'), key)));
  expect(new Set(made.map(({ body }) => body.invoiceId)).size).toBe(1);
});

describe('refused, and nothing is stored:', () => {
  test.each<[string, object, [field: string, code: string][]]>([
    ['a price and an amount', { amount: '1', ...euros('1') }, [['price', 'CONFLICTS']]],
    ['neither', {}, [['amount', 'REQUIRED']]],
    ['a text', { price: '19.99 EUR' }, [['price', 'WRONG_TYPE']]],
    ['null', { price: null }, [['price', 'WRONG_TYPE']]],
    ['a list', { price: ['19.99', 'EUR'] }, [['price', 'WRONG_TYPE']]],
    [
      'an empty object',
      { price: {} },
      [
        ['price.amount', 'REQUIRED'],
        ['price.currency', 'REQUIRED'],
      ],
    ],
    ['a number', { price: { amount: 19.99, currency: 'EUR' } }, [['price.amount', 'WRONG_TYPE']]],
    ['a sign', euros('-1'), [['price.amount', 'SIGN']]],
    ['nothing', euros('0.00'), [['price.amount', 'NOT_POSITIVE']]],
    ['seven decimals', euros('1.0000001'), [['price.amount', 'TOO_PRECISE']]],
    [
      'a currency in small letters',
      { price: { amount: '1', currency: 'eur' } },
      [['price.currency', 'WRONG_CHARACTER']],
    ],
    ['a rate of the shop', { price: { amount: '1', currency: 'EUR', rate: '9' } }, [['price.rate', 'UNKNOWN_FIELD']]],
    ['a currency without a rate', { price: { amount: '1', currency: 'GBP' } }, [['price.currency', 'NO_RATE']]],
    [
      'a currency without a rate and a lifetime beyond that of the project',
      { price: { amount: '1', currency: 'GBP' }, expiresInSeconds: 1 },
      [
        ['price.currency', 'NO_RATE'],
        ['expiresInSeconds', 'OUT_OF_RANGE'],
      ],
    ],
    ['more than an invoice can have', euros('999999999999'), [['price.amount', 'TOO_LARGE']]],
  ])('%s', async (_name, body, expected) => {
    const project = await createTestProject(service.db);
    await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
    const reply = await post(project, body);
    expectProblem(reply, 400, 'INVALID_REQUEST');
    expect(fieldsOf(reply.body)).toEqual(expected.map(([field]) => field).sort());
    expect(reply.body.errors.map(({ code }: Json) => code)).toEqual(expected.map(([, code]) => code));
    expect(await countInvoices(project)).toBe(0);
  });

  test('a price at a rate that is too old', async () => {
    const project = await createTestProject(service.db);
    const at = unixMs(service.clock.now() - 61_000);
    await setRate(project, 'EUR', { ...READ, rateMicro: 900_000n, readMicro: 900_000n, readAt: at });
    const reply = await post(project, euros('1'));
    expectProblem(reply, 503, 'RATE_UNAVAILABLE');
    expect(reply.headers['retry-after']).toBe('60');
    expect(await countInvoices(project)).toBe(0);
  });

  test('a price in a project that has no rate, whatever another has', async () => {
    const [project, other] = [await createTestProject(service.db), await createTestProject(service.db)];
    await setRate(other, 'EUR', { ...FIXED, rateMicro: 920_000n });
    const reply = await post(project, euros('1'));
    expect(reply.body.errors).toEqual([
      {
        ...{ field: 'price.currency', code: 'NO_RATE' },
        message:
          'is EUR, but the project has rates for: none; the operator can set a rate with: quittance adapter enable --kind price --currency EUR --rate …',
      },
    ]);
  });

  test('a price at a rate that somebody wrote into the database', async () => {
    const project = await createTestProject(service.db);
    const id = await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
    await runSql(service, 'update webhook_endpoints set rate_micro = 1, mac = null where id = $1', [id]);
    expect((await post(project, euros('1'))).body.errors).toMatchObject([{ code: 'NO_RATE' }]);
  });

  test('a price at a rate that somebody wrote in place of the one that was read, until it is read again', async () => {
    const project = await createTestProject(service.db);
    const at = unixMs(service.clock.now() - 5000);
    const id = await setRate(project, 'EUR', { ...READ, rateMicro: 900_000n, readMicro: 900_000n, readAt: at });
    expect((await post(project, euros('1'))).status).toBe(201);
    await runSql(service, 'update webhook_endpoints set read_micro = 950000 where id = $1', [id]);
    expectProblem(await post(project, euros('1')), 503, 'RATE_UNAVAILABLE');
  });

  test('a price at a rate that the operator disabled, even if somebody enables it in the database', async () => {
    const project = await createTestProject(service.db);
    const id = await setRate(project, 'EUR', { ...FIXED, rateMicro: 920_000n });
    expect((await post(project, euros('1'))).status).toBe(201);
    await revokeApiKey(service.db, id, unixMs(Date.now()));
    expect((await post(project, euros('1'))).body.errors).toMatchObject([{ code: 'NO_RATE' }]);
    await runSql(service, 'alter table api_keys disable trigger user');
    await runSql(service, 'update api_keys set revoked_at = null where id = $1', [id]);
    await runSql(service, 'alter table api_keys enable trigger user');
    expect((await post(project, euros('1'))).body.errors).toMatchObject([{ code: 'NO_RATE' }]);
  });
});

test('the operator sets one rate for each currency, and ends it; shops order through none', async () => {
  const project = await createTestProject(service.db);
  const deps = {
    ...{ db: service.db, now: () => unixMs(service.clock.now()), random: randomBytes },
    ...{ config: { keyRing: TEST_KEY_RING, webhooks: { localTargets: true } }, note: () => undefined },
  } as never;
  const actor = commandActor('Olga');
  const enable = (given: object) =>
    perform(
      enableAdapter,
      deps,
      actor,
      enableAdapter.read({ projectId: project.projectId, kind: 'price', ...given } as never, 0 as never),
    );
  const euro = await enable({ currency: 'EUR', rate: '0.92' });
  expect(euro).toMatchObject({
    ...{ kind: 'price', currency: 'EUR', rate: '0.92', path: null, pid: null, secret: null },
  });
  const dollar = await enable({ currency: 'USD', rate: '1' });
  expect(() => enableAdapter.read({ kind: 'price', rate: '1' } as never, 0 as never)).toThrow(/currency is missing/);
  expect(await enable({ currency: 'EUR', rate: '0.95' })).toMatchObject({ adapterId: euro.adapterId, rate: '0.95' });
  const made = await post(project, euros('9.5'));
  expect(await paymentOf(project, made.body.invoiceId)).toMatchObject({ requestedAmount: '10.000000' });
  // An earlier release let operators disable the callbacks of a price, which has none.
  await runSql(service, 'update webhook_endpoints set disabled_at = now() where project_id = $1', [project.id]);
  expect((await post(project, euros('9.5'))).status).toBe(201);
  const listed = await perform(listAdapters, deps, actor, { projectId: project.projectId });
  expect(listed.data.map(({ currency, path, callbacksDisabledAt }) => [currency, path, callbacksDisabledAt])).toEqual([
    ['EUR', null, null],
    ['USD', null, null],
  ]);
  expect(() =>
    enableAdapter.read({ kind: 'price', currency: 'EUR', rate: '1', secret: 'x'.repeat(24) } as never, 0 as never),
  ).toThrow(/secret does not apply to prices/);
  const order = await ask(`${service.url}/adapters/${euro.adapterId}/api/v1/order/create-transaction`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"order_id":"1","amount":1}',
  });
  expect([order.status, order.body.status_code]).toEqual([404, 401]);
  const { apiKey } = await addKey(service.db, project.id, { scopes: SCOPES });
  const changed = await ask(`${service.url}/v1/webhook-endpoints/${euro.adapterId}`, {
    method: 'PATCH',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: '{"description":"mine"}',
  });
  expectProblem(changed, 409, 'ENDPOINT_CONFLICT');
  expect(changed.body.detail).toContain('is a currency rate for prices');
  await perform(disableAdapter, deps, actor, { adapterId: euro.adapterId });
  expect((await post(project, euros('9.5'))).body.errors).toMatchObject([{ code: 'NO_RATE' }]);
  expect((await post(project, { price: { amount: '1', currency: 'USD' } })).status).toBe(201);
  expect(dollar.adapterId).not.toBe(euro.adapterId);
  expect(encodeId('prj', project.id)).toBe(project.projectId);
});
