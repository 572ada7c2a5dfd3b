import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../src/core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { insertApiKey, listKeys } from '../../src/faces/operator/subjects/keys.ts';
import { addKey } from '../contract/keys.ts';
import { runSql } from '../contract/sql.ts';
import {
  createInvoice,
  createPatiently,
  createTestProject,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

/** Attacks by someone who can write to the database but lacks the master key. */
let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterEach(() => service.stop());

/** Acts as the tables' owner, bypassing every guard. */
async function pastGuards(table: string, text: string, values: unknown[] = []): Promise<void> {
  await runSql(service, `alter table ${table} disable trigger user`);
  await runSql(service, text, values);
  await runSql(service, `alter table ${table} enable trigger user`);
  if (table === 'invoices') {
    await runSql(service, 'alter table invoices disable trigger invoices_of_a_closed_ledger');
  }
}

const alarms = async () =>
  (await runSql(service, `select subject from alarms where kind = 'row-changed' and resolved_at is null`)).map(
    ({ subject }) => String(subject),
  );
const untilAlarm = (text: string) =>
  eventually(alarms, (subjects) => subjects.some((subject) => subject.includes(text)));

async function newInvoice() {
  const { status, body } = await createInvoice(service);
  expect(status).toBe(201);
  return { ...body, uuid: decodeId('inv', body.invoiceId) ?? '' };
}

test('what nobody touched is as it was sealed: it is shown, paid and told', async () => {
  const invoice = await newInvoice();
  const { address, amountMicro } = await payableOf(service, invoice.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  expect((await fetch(invoice.checkoutUrl)).status).toBe(200);
  expect((await fetch(`${invoice.checkoutUrl}/receipt.json`)).status).toBe(200);
  await eventually(
    () => inboxOf(service, invoice.invoiceId),
    (told) => told.some(({ body }) => body?.type === 'invoice.paid') || told.length >= 2,
  );
  // Lists are sealed too.
  const keyId = uuidV7(Date.now(), randomBytes(10));
  const apiKey = formatApiKey('devnet', keyId, randomBytes(32));
  await insertApiKey(service.db, {
    ...{ id: keyId, projectId: service.project.id, name: 'bound', allowedCidrs: ['127.0.0.0/8', '::1/128'] },
    ...{ secretSha256: createHash('sha256').update(apiKey).digest(), expiresAt: unixMs(Date.now() + 3_600_000) },
  });
  expect((await createInvoice(service, { apiKey })).status).toBe(201);
  const endpoint = { id: randomUUID(), projectId: service.project.id, url: 'https://shop.example/' };
  await insertWebhookEndpoint(service.db, { ...endpoint, eventTypes: ['invoice.paid', 'ping'] });
  expect(await findWebhookEndpoint(service.db, endpoint.id)).toMatchObject({ eventTypes: ['invoice.paid', 'ping'] });
  expect(await alarms()).toEqual([]);
});

test.each([
  ['that only reads is given more', ['read'], '{create,read,events,webhooks}'],
  ['that only reads is made one of before there were scopes', ['read'], null],
  ['without scopes is given webhooks', undefined, '{webhooks}'],
] as const)('a key %s, and is none any more', async (_, scopes, widened) => {
  const { keyId, apiKey } = await addKey(service.db, service.project.id, scopes === undefined ? {} : { scopes });
  const read = async () => (await fetch(`${service.url}/v1/invoices`, { headers: { 'x-api-key': apiKey } })).status;
  expect(await read()).toBe(200);
  await pastGuards('api_keys', 'update api_keys set scopes = $2 where id = $1', [keyId, widened]);
  // A process caches a key for some seconds.
  service.clock.advance(30_000);
  expect(await read()).toBe(401);
  await untilAlarm(keyId);
  const { data } = await listKeys.run(
    { db: service.db, now: () => unixMs(service.clock.now()) },
    commandActor('anna'),
    {
      projectId: encodeId('prj', service.project.id),
    },
  );
  const statusOf = (id: string) => data.find((key) => key.keyId === encodeId('key', id))?.status;
  expect([statusOf(keyId), data[0]?.status]).toEqual(['invalid', 'active']);
});

test('a project whose address was changed fails alone: others that create at the same time have their invoices', async () => {
  const other = await createTestProject(service.db);
  await pastGuards('addresses', 'update addresses set account = $1, address = tron_address($1) where project_id = $2', [
    randomBytes(20),
    other.id,
  ]);
  const answers = await Promise.all(
    // A slow machine refuses some of these concurrent requests with 503.
    Array.from({ length: 40 }, (_, n) =>
      n % 2 === 0 ? createPatiently(service) : createInvoice(service, { apiKey: other.apiKey }),
    ),
  );
  expect(answers.filter((_, n) => n % 2 === 0).map(({ status }) => status)).toEqual(Array(20).fill(201));
  expect(answers.filter((_, n) => n % 2 === 1).some(({ status }) => status === 201)).toBe(false);
});

test.each(['tail', 'exact'] as const)(
  'however many addresses somebody puts before the honest ones, orders get those (%s)',
  async (policy) => {
    // With tails, an address holds at most ten of these orders, otherwise one.
    const least = policy === 'exact' ? {} : { maxSurchargeMicro: 100n };
    const shop = await createTestProject(service.db, { addressCount: 2, policy, ...least });
    const move = 'update addresses set position = position * 500 where project_id = $1';
    await pastGuards('addresses', move, [shop.id]);
    await runSql(
      service,
      `insert into addresses (id, project_id, network, account, address, policy, position)
       select gen_random_uuid(), $1, 'devnet', account, tron_address(account), $2, n
       from generate_series(1, 999) n, lateral (select substr(sha256((n || $2)::bytea), 1, 20) as account) a where n <> 500`,
      [shop.id, policy],
    );
    const orders = policy === 'exact' ? 2 : 12;
    const shown: string[] = [];
    for (let n = 0; n < orders; n += 1) {
      const { status, body } = await createInvoice(service, { apiKey: shop.apiKey, body: { amount: '25.00' } });
      expect([status, body]).toMatchObject([201, {}]);
      shown.push((await payableOf({ ...service, project: shop }, body.invoiceId)).address);
    }
    expect(new Set(shown)).toEqual(new Set(shop.addresses));
    const amounts = policy === 'exact' ? 1 : 10;
    const answers = [];
    for (let n = 0; n < amounts; n += 1) {
      answers.push((await createInvoice(service, { apiKey: shop.apiKey, body: { amount: '25.00' } })).status);
    }
    expect(answers.at(-1)).toBe(409);
  },
);

test('in warn the same is an alarm, and everything goes on', async () => {
  await service.stop();
  service = await startTestService({ config: { rowMacs: 'warn' } });
  const invoice = await newInvoice();
  await pastGuards('invoices', `update invoices set external_id = 'other' where id = $1`, [invoice.uuid]);
  expect((await readInvoice(service, invoice.invoiceId)).status).toBe(200);
  await untilAlarm(invoice.uuid);
});
