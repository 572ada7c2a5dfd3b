import { createHash, randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatApiKey } from '../../src/domain/api-key.ts';
import { decodeId, uuidV7 } from '../../src/domain/ids.ts';
import { unixMs } from '../../src/domain/time.ts';
import { insertApiKey } from '../../src/store/access/api-keys.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../src/store/outbox/webhook-endpoints.ts';
import { runSql } from '../contract/sql.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';

/** What somebody does who can write to the database, and does not hold the master key. */
let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterEach(() => service.stop());

/** As the owner of the tables, past every guard. */
async function pastGuards(table: string, text: string, values: unknown[] = []): Promise<void> {
  await runSql(service, `alter table ${table} disable trigger user`);
  await runSql(service, text, values);
  await runSql(service, `alter table ${table} enable trigger user`);
  if (table === 'invoices') {
    await runSql(service, 'alter table invoices disable trigger invoices_of_a_closed_ledger');
  }
}

/** As the service's own user, who has no right but those that the service needs. */
async function asService(text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: service.connectionString });
  await client.connect();
  await client.query(text, values).finally(() => client.end());
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

/** Nobody is shown the order: neither the shop nor the payer. */
async function expectShownToNobody({ invoiceId, checkoutUrl }: { invoiceId: string; checkoutUrl: string }) {
  expect(await readInvoice(service, invoiceId)).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
  const page = await fetch(checkoutUrl);
  const html = await page.text();
  expect([page.status, html.includes(service.project.addresses[0] ?? '')]).toEqual([503, false]);
  expect((await fetch(`${checkoutUrl}/receipt.json`)).status).not.toBe(200);
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

test('a project whose address was changed fails alone: others that create at the same time have their invoices', async () => {
  const other = await createTestProject(service.db);
  await pastGuards('addresses', 'update addresses set account = $1, address = tron_address($1) where project_id = $2', [
    randomBytes(20),
    other.id,
  ]);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => createInvoice(service, n % 2 === 0 ? {} : { apiKey: other.apiKey })),
  );
  expect(answers.filter((_, n) => n % 2 === 0).map(({ status }) => status)).toEqual(Array(20).fill(201));
  expect(answers.filter((_, n) => n % 2 === 1).some(({ status }) => status === 201)).toBe(false);
});

test.each([
  ['the address of an order (5)', 'address_id'],
  ['what is to be paid (6)', 'payable_micro'],
  ['what was asked for (7)', 'requested_micro'],
  ['the order number', 'external_id'],
])('whoever changes %s: the order is shown to nobody, and an alarm names it', async (_, column) => {
  const invoice = await newInvoice();
  const values: Record<string, string> = {
    address_id: `(select id from addresses where project_id <> i.project_id limit 1)`,
    payable_micro: 'payable_micro + 1',
    requested_micro: '1',
    external_id: `external_id || 'x'`,
  };
  await createTestProject(service.db);
  await runSql(service, 'alter table invoices drop constraint if exists invoices_project_id_network_address_id_fkey');
  await pastGuards('invoices', `update invoices i set ${column} = ${values[column]} where id = $1`, [invoice.uuid]);
  await expectShownToNobody(invoice);
  await untilAlarm(invoice.uuid);
});

test('whoever swaps the links of two orders (8): neither is shown', async () => {
  const [one, other] = [await newInvoice(), await newInvoice()];
  await runSql(service, 'alter table invoices drop constraint invoices_checkout_token');
  await pastGuards(
    'invoices',
    `update invoices i set checkout_token = o.checkout_token from invoices o
     where i.id = any($1::uuid[]) and o.id = any($1::uuid[]) and o.id <> i.id`,
    [[one.uuid, other.uuid]],
  );
  await expectShownToNobody(one);
  await expectShownToNobody(other);
});

test('whoever writes PAID without a payment (10), or with a transfer that never was (11), makes nothing PAID', async () => {
  const [alone, forged] = [await newInvoice(), await newInvoice()];
  await runSql(service, 'alter table invoices drop constraint invoices_paid_by_transfer');
  await pastGuards('invoices', `update invoices set status = 'PAID' where id = $1`, [alone.uuid]);
  await expectShownToNobody(alone);

  const transferId = uuidV7(Date.now(), randomBytes(10));
  await asService(
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
       amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes)
     select $2, project_id, network, address_id, $3, 0, 5, $3, now(), 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', payable_micro, 'matched', id,
       payable_micro, $4, 'proven', '{}' from invoices where id = $1`,
    [forged.uuid, transferId, randomBytes(32), randomBytes(20)],
  );
  await asService(`update invoices set status = 'PAID', paid_transfer_id = $2 where id = $1`, [
    forged.uuid,
    transferId,
  ]);
  await expectShownToNobody(forged);
  await untilAlarm('invoices.paid');
});

test('whoever writes an event (15), or rewrites one (16), has nothing sent or told in the shop’s name', async () => {
  const { id: projectId } = service.project;
  const eventId = uuidV7(Date.now(), randomBytes(10));
  const body = JSON.stringify({ type: 'invoice.paid', data: { invoiceId: 'inv_forged' } });
  await asService(
    `with s as (update event_streams set last_position = last_position + 1 where project_id = $2 returning last_position),
     n as (insert into event_streams (project_id, last_position) select $2, 1 where not exists (select from s) returning last_position)
     insert into events (id, project_id, network, type, sequence, body, created_at, position)
     select $1, $2, 'devnet', 'invoice.paid', 1, $3, now(), coalesce((select last_position from s), (select last_position from n))`,
    [eventId, projectId, body],
  );
  await asService(
    `insert into deliveries (event_id, endpoint_id, project_id, sequence, next_attempt_at, created_at)
     select $1, id, project_id, 1, now() - interval '1 second', now() - interval '1 second' from webhook_endpoints where project_id = $2`,
    [eventId, projectId],
  );
  await untilAlarm('events');
  expect(JSON.stringify(await inboxOf(service))).not.toContain('inv_forged');
  const feed = await call(`${service.url}/v1/events`, { headers: { 'x-api-key': service.project.apiKey } });
  expect(feed).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
});

test('whoever inserts an API key (17), replaces its digest (18) or takes its revocation back (19) has none', async () => {
  const keyId = uuidV7(Date.now(), randomBytes(10));
  const forged = formatApiKey('devnet', keyId, randomBytes(32));
  const digest = (key: string) => createHash('sha256').update(key).digest();
  const read = async (apiKey: string) => {
    const answer = await call(`${service.url}/v1/invoices?externalId=none`, { headers: { 'x-api-key': apiKey } });
    return answer.status;
  };
  await asService(
    `insert into api_keys (id, project_id, network, name, secret_sha256) values ($1, $2, 'devnet', 'thief', $3)`,
    [keyId, service.project.id, digest(forged)],
  );
  expect(await read(forged)).toBe(401);

  const other = await createTestProject(service.db);
  const replaced = formatApiKey('devnet', other.keyId, randomBytes(32));
  await pastGuards('api_keys', 'update api_keys set secret_sha256 = $2 where id = $1', [other.keyId, digest(replaced)]);
  expect(await read(replaced)).toBe(401);

  const third = await createTestProject(service.db);
  const { revokeApiKey } = await import('../../src/store/access/api-keys.ts');
  await revokeApiKey(service.db, third.keyId, Date.now() as never);
  await pastGuards('api_keys', 'update api_keys set revoked_at = null where id = $1', [third.keyId]);
  expect(await read(third.apiKey)).toBe(401);
  expect(await read(service.project.apiKey)).toBe(200);
});

test('whoever changes the URL of a webhook (20) gets nothing', async () => {
  const invoice = await newInvoice();
  await asService(`update webhook_endpoints set url = $1`, [`${service.inboxUrl}/thief`]);
  const { address, amountMicro } = await payableOf(service, invoice.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  await untilAlarm('webhook_endpoints');
  expect(await inboxOf(service)).toEqual([]);
});

test('whoever puts an address into the pool (3), and takes the honest ones out (4), has no order shown', async () => {
  const account = randomBytes(20);
  await asService(
    `insert into addresses (id, project_id, network, account, address, policy, position)
     select $1, id, network, $2, tron_address($2), policy, 50 from projects where id = $3`,
    [randomUUID(), account, service.project.id],
  );
  expect((await createInvoice(service)).status).toBe(201);
  await asService('update addresses set retired_at = now() where position < 50');
  expect((await createInvoice(service)).status).toBe(409);
  await untilAlarm('addresses');
});

test('whoever inserts a receipt key (25) does not have it published', async () => {
  await asService('insert into receipt_keys (id, public_key, created_at, retired_at) values ($1, $2, now(), now())', [
    randomBytes(32).toString('base64url'),
    randomBytes(32),
  ]);
  const { status, body } = await call(`${service.url}/.well-known/quittance-receipt-keys.json`);
  expect([status, body?.keys]).not.toEqual([200, expect.arrayContaining([expect.anything()])]);
  await untilAlarm('receipt_keys');
});

test.each([
  ['the name and link of the shop (29)', `return_url = 'https://thief.example'`],
  ['the policy or surcharge (33)', 'max_surcharge_micro = 1000000'],
])('whoever changes %s: the project’s keys make no order until it is put right', async (_, change) => {
  const invoice = await newInvoice();
  await asService(`update projects set ${change} where id = $1`, [service.project.id]);
  await service.restart();
  expect((await createInvoice(service)).status).toBe(401);
  await untilAlarm('projects');
  expect((await fetch(invoice.checkoutUrl)).status).toBe(503);
});

test('whoever changes text and account of an address (1, 2) has no page, and nothing PAID', async () => {
  const invoice = await newInvoice();
  const account = randomBytes(20);
  await pastGuards('addresses', 'update addresses set account = $1, address = tron_address($1)', [account]);
  await expectShownToNobody(invoice);
  await untilAlarm('addresses');
});

test('whoever rewrites what an event said (16) has the feed stopped', async () => {
  const invoice = await newInvoice();
  const { address, amountMicro } = await payableOf(service, invoice.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  await pastGuards('events', `update events set body = replace(body, 'PAID', 'EXPIRED')`);
  const feed = await call(`${service.url}/v1/events`, { headers: { 'x-api-key': service.project.apiKey } });
  expect(feed).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
});

test('whoever swaps an account key (41) has no address derived from it', async () => {
  const { findAccountKey } = await import('../../src/store/ledger/account-keys.ts');
  const xpub = `xpub${'6'.repeat(107)}`;
  await asService(
    `insert into account_keys (id, project_id, network, xpub, first_index, auto_derive_limit) values ($1, $2, 'devnet', $3, 0, 100)`,
    [randomUUID(), service.project.id, xpub],
  );
  await expect(findAccountKey(service.db, 'devnet', xpub)).rejects.toMatchObject({ code: 'ROW_CHANGED' });
});

test('whoever inserts a set of producers (39), or moves the cursor (42), stops the watcher, which says so and believes nothing', async () => {
  const { findProducerSets } = await import('../../src/store/chain/producer-sets.ts');
  await asService(
    `insert into producer_sets (network, chain_time, replaced_after, reason, producers, nodes)
     select network, now(), now(), 'operator', producers, nodes from producer_sets limit 1`,
  );
  await expect(findProducerSets(service.db, 'devnet', 3)).rejects.toMatchObject({ code: 'ROW_CHANGED' });
  await asService(`update chain_cursors set solid_number = solid_number + 100000`);
  await untilAlarm('chain_cursors');
});

test('in warn the same is an alarm, and everything goes on', async () => {
  await service.stop();
  service = await startTestService({ config: { rowMacs: 'warn' } });
  const invoice = await newInvoice();
  await pastGuards('invoices', `update invoices set external_id = 'other' where id = $1`, [invoice.uuid]);
  expect((await readInvoice(service, invoice.invoiceId)).status).toBe(200);
  await untilAlarm(invoice.uuid);
});

/** An order is made, paid and told. */
async function expectWell(): Promise<void> {
  const invoice = await newInvoice();
  const { address, amountMicro } = await payableOf(service, invoice.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
}

test.each([
  ['what the nodes say of the chain (34)', `update chain_status set status = '{}'`],
  [
    'the lease of the watcher (35)',
    `update leases set holder = 'thief', epoch = epoch + 1, expires_at = now() + interval '10 years'`,
  ],
  ['hints about free amounts (38)', 'update allocation_hints set position = 900, epoch = 900'],
])('whoever writes %s, with the service’s rights or as owner, holds up nothing', async (_, text) => {
  await expectWell();
  await asService(text);
  await expectWell();
  await runSql(service, text);
  await expectWell();
});

test('whoever deletes the sets of producers (40) has them read anew from the nodes', async () => {
  await expectWell();
  await service.stopService();
  await pastGuards('producer_sets', 'delete from producer_sets');
  await service.restart();
  await expectWell();
});

test('whoever closes the ledger (36, 37) stops new orders, and loses none', async () => {
  const invoice = await newInvoice();
  await expect(asService('update ledger_identity set closed_at = now()')).rejects.toThrow('permission denied');
  await runSql(service, 'alter table invoices enable trigger invoices_of_a_closed_ledger');
  expect((await createInvoice(service)).status).toBe(503);
  expect((await readInvoice(service, invoice.invoiceId)).status).toBe(200);
  await runSql(service, 'update ledger_identity set closed_at = now()');
  await service.stopService();
  await expect(service.restart()).rejects.toThrow();
});
