import { randomBytes, randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeId, encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findActionsOn, insertOperatorActions, listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { insertAdminKey } from '../../src/faces/operator/subjects/admin-keys.ts';
import { insertPasskey } from '../../src/faces/operator/subjects/passkeys.ts';
import { insertPerson } from '../../src/faces/operator/subjects/people.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { type FastWatch, startFastWatch } from './fast-watch.ts';

/** Attacks by an owner of the tables that leave no row with a wrong seal: deleting rows, and restoring old ones. */
let service: TestService;
let watch: FastWatch | null = null;
beforeEach(async () => {
  watch = null;
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterEach(async () => {
  await watch?.stop();
  await service.stop();
});

function startWatch(aheadMs?: () => number): void {
  watch = startFastWatch(service, aheadMs);
}
const lookAgain = () => watch?.lookAgain();

/** Runs several statements at once, bypassing every guard and reference. */
async function asOwner(table: string, text: string): Promise<void> {
  await runSql(
    service,
    `begin; alter table ${table} disable trigger all; ${text}; alter table ${table} enable trigger all; commit`,
  );
}

const openAlarms = (kind: string) => async () =>
  (
    await runSql(
      service,
      'select kind, subject, detail from alarms where kind = $1 and (resolved_at is null or needs_closing and closed_mac is null) order by subject',
      [kind],
    )
  ).map(({ subject, detail }) => ({ subject: String(subject), detail: String(detail) }));
const untilAlarm = (kind: string, subject: string) =>
  eventually(openAlarms(kind), (alarms) => alarms.some((alarm) => alarm.subject === subject));

/** Returns the first column of the first row. */
const value = async (text: string, values: unknown[] = []) =>
  String(Object.values((await runSql(service, text, values))[0] ?? {})[0]);
const listed = async (subject: string) =>
  Number(
    await value(`select coalesce(sum(octet_length(content)), 0) / 16 from inventory_pages where subject = $1`, [
      subject,
    ]),
  );
const untilListed = (subject: string, count: number) =>
  eventually(
    () => listed(subject),
    (rows) => rows >= count,
  );

async function paidInvoice() {
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await service.payer.transfer({ contract: service.devnet.usdtContract, to: address, amountMicro });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  return decodeId('inv', body.invoiceId) ?? '';
}

test('what nobody touched is listed whole, and is no alarm', async () => {
  await paidInvoice();
  for (let n = 0; n < 5; n += 1) await createInvoice(service);
  startWatch();
  await untilListed('invoices', 6);
  await untilListed('transfers', 1);
  await untilListed('events', 1);
  await paidInvoice();
  await untilListed('invoices', 7);
  await untilListed('transfers', 2);
  await lookAgain();
  expect(await watch?.metrics.registry.metrics()).toContain(
    'quittance_inventory_rows{network="devnet",subject="invoices"} 7',
  );
  expect(await openAlarms('rows-missing')()).toEqual([]);
  expect(await openAlarms('row-changed')()).toEqual([]);
});

test.each(
  someCases(
    [
      ['an order (14)', 'invoices'],
      ['a payment (12)', 'transfers'],
      ['an event', 'events'],
    ],
    3,
  ),
)('whoever deletes %s leaves an alarm that names the row, until it is back', async (_, table) => {
  await paidInvoice();
  startWatch();
  await untilListed(table, 1);
  const id = await value(`select id from ${table} limit 1`);
  const subject = `${table}:${id}`;
  if (table === 'transfers') {
    await asOwner('invoices', `update invoices set status = 'EXPIRED', paid_transfer_id = null, paid_mac = null`);
  }
  await asOwner(
    table,
    `create table kept as select * from ${table} where id = '${id}'; delete from ${table} where id = '${id}'`,
  );
  await untilAlarm('rows-missing', subject);
  await asOwner(table, `insert into ${table} select * from kept`);
  await eventually(openAlarms('rows-missing'), (alarms) => alarms.length === 0);
});

test('a row that is deleted seconds after its making is missing at once, and is listed as missing for whoever looks later', async () => {
  startWatch(() => 0);
  const { body } = await createInvoice(service);
  await lookAgain();
  const subject = `invoices:${decodeId('inv', body.invoiceId)}`;
  expect(await listed('invoices')).toBe(0);
  await asOwner('invoices', `delete from invoices`);
  await untilAlarm('rows-missing', subject);
  expect(await listed('invoices')).toBe(0);
});

test('a row that was young when it was deleted is listed with the others when its time has come', async () => {
  let aheadMs = 0;
  startWatch(() => aheadMs);
  await createInvoice(service);
  await lookAgain();
  await asOwner('invoices', `delete from invoices`);
  await eventually(openAlarms('rows-missing'), ({ length }) => length === 1);
  aheadMs = 600_000;
  await untilListed('invoices', 1);
});

test('whoever deletes rows, and puts the inventory back as it was before them, is found by whoever saw them', async () => {
  await paidInvoice();
  startWatch();
  await untilListed('invoices', 1);
  const content = await value(`select encode(content, 'hex') from inventory_pages where subject = 'invoices'`);
  const mac = await value(`select encode(mac, 'hex') from inventory_pages where subject = 'invoices'`);
  await createInvoice(service);
  await untilListed('invoices', 2);
  await service.stopService();
  await runSql(service, 'alter table invoices disable trigger all');
  await runSql(
    service,
    `with gone as (delete from invoices where status = 'PENDING')
     update inventory_pages set content = decode('${content}', 'hex'), mac = decode('${mac}', 'hex') where subject = 'invoices'`,
  );
  await untilAlarm('rows-missing', 'inventory_pages:invoices');
});

test('whoever deletes the inventory itself, or writes a page of it, is found', async () => {
  await paidInvoice();
  // The service has its own watch, which would write pages too.
  await service.stopService();
  startWatch();
  await untilListed('events', 1);
  await asOwner('inventory_pages', `delete from inventory_pages where subject = 'events'`);
  await untilAlarm('rows-missing', 'inventory_pages:events');
  await cli('project', 'update', service.project.projectId, '--name', 'New name');
  await lookAgain();
  await asOwner('inventory_pages', `delete from inventory_pages where subject = 'settings'`);
  await untilAlarm('rows-missing', 'inventory_pages:settings');
  await runSql(service, `update inventory_pages set content = '' where subject = 'transfers'`);
  const page = await value(`select id from inventory_pages where subject = 'transfers'`);
  await untilAlarm('row-changed', `inventory_pages ${page}`);
});

test('a planted row without a seal is on no list, and found though nobody asks for it', async () => {
  await paidInvoice();
  await runSql(
    service,
    `insert into events (id, project_id, network, type, sequence, body, created_at, position)
     select gen_random_uuid(), project_id, network, type, 900, body, now(), 900 from events limit 1`,
  );
  startWatch();
  await untilListed('events', 1);
  await eventually(openAlarms('row-changed'), (alarms) => alarms.some(({ subject }) => subject.startsWith('events ')));
});

test('rows that somebody plants in great number among those of a page do not hide that one of them is gone', async () => {
  await paidInvoice();
  startWatch();
  await untilListed('events', 1);
  const id = await value('select id from events order by id limit 1');
  await runSql(
    service,
    `insert into events (id, project_id, network, type, sequence, body, created_at, position)
     select lpad(to_hex(n), 32, '0')::uuid, project_id, network, type, 900 + n, body, now(), 900 + n
     from generate_series(1, 6000) n, (select * from events limit 1) e`,
  );
  await asOwner('events', `delete from events where id = '${id}'`);
  await untilAlarm('rows-missing', `events:${id}`);
});

const KEY = TEST_KEY_RING.current().bytes.toString('base64');
const cli = async (...args: string[]) => {
  const env = {
    ...{ DATABASE_URL: service.connectionString, DATABASE_OWNER_URL: service.ownerString },
    ...{ QUITTANCE_MASTER_KEY: KEY, QUITTANCE_WEBHOOK_TARGETS: 'local' },
  };
  expect(await runCli([...args, '--json'], { env })).toMatchObject({ code: 0 });
};
const idIn = (table: string) =>
  value(`select ${table === 'passkeys' ? `'\\x' || encode(id, 'hex')` : 'id'} from ${table} limit 1`);
const settings = () => value(`select encode(content, 'hex') from inventory_pages where subject = 'settings'`);

/** Adds a person with a passkey, and an admin key. */
async function insertSomebody(): Promise<void> {
  const { db } = service;
  const [id, at] = [randomUUID(), unixMs(Date.now())];
  await insertPerson(db, { id, login: 'bert', name: 'bert', role: 'viewer', projects: null }, at);
  await insertPasskey(db, id, {
    ...{ id: randomBytes(32), publicKey: randomBytes(77), counter: 0, transports: [], name: 'laptop', createdAt: at },
  });
  await insertAdminKey(db, {
    ...{ id: randomUUID(), name: 'cron', role: 'owner', projects: null, allowedCidrs: null, expiresAt: null },
    secretSha256: randomBytes(32),
  });
}

/** Settings that people create, and legitimate changes of them. */
const SETTINGS = [
  ['a revoked key (19)', 'api_keys', (id: string) => cli('key', 'revoke', encodeId('key', id))],
  [
    'the former URL of a webhook (20)',
    'webhook_endpoints',
    (id: string) => cli('webhook', 'update', encodeId('whe', id), '--url', `${service.inboxUrl}/new`),
  ],
  [
    'the former settings of a project (29, 33)',
    'projects',
    () => cli('project', 'update', service.project.projectId, '--name', 'New name'),
  ],
  [
    'a retired address',
    'addresses',
    () => cli('address', 'retire', '--project', service.project.projectId, String(service.project.addresses[0])),
  ],
  ['a revoked admin key', 'admin_keys', (id: string) => cli('admin-key', 'revoke', encodeId('adm', id))],
  ['a removed person', 'people', () => cli('user', 'remove', 'bert')],
  ['the former role of a person', 'people', () => cli('user', 'role', 'bert', '--role', 'operator')],
  ['a removed passkey', 'passkeys', () => cli('user', 'remove', 'bert')],
] as const;

test.each(someCases(SETTINGS, 3))(
  'whoever puts back %s leaves an alarm; whoever changed it as they should left none',
  async (_, table, change) => {
    await insertSomebody();
    // The service has its own watch, which may still raise an alarm for what it read before.
    await service.stopService();
    startWatch();
    const before = await eventually(settings, (content) => content !== 'undefined');
    const id = await idIn(table);
    await runSql(service, `create table kept as select * from ${table} where id = '${id}'`);
    await change(id);
    await eventually(settings, (content) => content !== before);
    expect(await openAlarms('row-changed')()).toEqual([]);
    const columns = await value(
      `select string_agg(quote_ident(attname::text), ', ') from pg_attribute
     where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''`,
      [table],
    );
    await asOwner(table, `update ${table} t set (${columns}) = (select ${columns} from kept) where id = '${id}'`);
    const named = id.replace('\\x', '');
    await untilAlarm('row-changed', `${table} ${named}`);
    // A person examines the row, accepts it as it is, and closes the alarm, which doesn't return.
    const unexplained = await settings();
    await cli('ledger', 'seal', '--accept', `${table}:${named}`, '--yes');
    await eventually(settings, (content) => content !== unexplained);
    await cli('chain', 'acknowledge', '--alarm', 'row-changed', '--network', 'devnet');
    await lookAgain();
    expect(await openAlarms('row-changed')()).toEqual([]);
  },
);

test.each([
  ['the former URL of a webhook', 'url = kept.url, mac = kept.mac'],
  ['a webhook that was enabled', 'disabled_at = now()'],
])('whoever puts back %s leaves an alarm, although an operator tests the webhook meanwhile', async (_, change) => {
  startWatch();
  const before = await eventually(settings, (content) => content !== 'undefined');
  const id = await idIn('webhook_endpoints');
  await runSql(service, `create table kept as select * from webhook_endpoints where id = '${id}'`);
  const endpointId = encodeId('whe', id);
  await cli('webhook', 'update', endpointId, '--url', `${service.inboxUrl}/new`);
  await eventually(settings, (content) => content !== before);
  await cli('webhook', 'test', endpointId);
  await asOwner('webhook_endpoints', `update webhook_endpoints w set ${change} from kept where w.id = kept.id`);
  await untilAlarm('row-changed', `webhook_endpoints ${id}`);
});

test('whoever puts back a revoked key leaves an alarm, although an operator changes a field of the key meanwhile', async () => {
  startWatch();
  const before = await eventually(settings, (content) => content !== 'undefined');
  const id = await idIn('api_keys');
  await runSql(service, `create table kept as select * from api_keys where id = '${id}'`);
  const keyId = encodeId('key', id);
  await cli('key', 'revoke', keyId);
  await eventually(settings, (content) => content !== before);
  await lookAgain();
  await watch?.stop();
  const [revoked] = await listOperatorActions(service.db, keyId);
  if (revoked === undefined) throw new Error('the change was not recorded');
  await service.db.transaction((tx) => insertOperatorActions(tx, [{ ...revoked, action: 'key.changed' }]));
  // The service's own watch would write pages too.
  await service.stopService();
  await asOwner(
    'api_keys',
    'update api_keys k set revoked_at = kept.revoked_at, mac = kept.mac from kept where k.id = kept.id',
  );
  startWatch();
  await untilAlarm('row-changed', `api_keys ${id}`);
});

test.each(['api_keys', 'webhook_endpoints'])('whoever deletes a row of %s leaves an alarm', async (table) => {
  startWatch();
  await eventually(settings, (content) => content !== 'undefined');
  const id = await idIn(table);
  await asOwner(table, `delete from ${table}`);
  await untilAlarm('rows-missing', `${table}:${id}`);
});

test('what an operator takes as gone is no alarm any more', async () => {
  const id = await paidInvoice();
  // The service has its own watch, which may still raise an alarm for what it read before.
  await service.stopService();
  startWatch();
  await untilListed('invoices', 1);
  await asOwner('invoices', `delete from invoices where id = '${id}'`);
  await untilAlarm('rows-missing', `invoices:${id}`);
  await cli('ledger', 'seal', '--accept', `invoices:${id}`, '--yes');
  await eventually(openAlarms('rows-missing'), (alarms) => alarms.length === 0);
  await lookAgain();
  expect(await openAlarms('rows-missing')()).toEqual([]);
});

test('whoever closes an alarm (27) finds it open again, until an operator closes it', async () => {
  const id = await paidInvoice();
  startWatch();
  await untilListed('transfers', 1);
  await service.stopService();
  await runSql(service, 'create table kept as select * from invoices');
  await asOwner(
    'invoices',
    `update invoices set status = 'EXPIRED', paid_transfer_id = null, paid_mac = null where id = '${id}'`,
  );
  await untilAlarm('row-changed', `invoices.paid ${id}`);
  await asOwner(
    'invoices',
    `update invoices i set status = 'PAID', paid_transfer_id = t.id, paid_mac = (select paid_mac from kept where kept.id = i.id) from transfers t where t.invoice_id = i.id`,
  );
  await lookAgain();
  await runSql(service, 'update alarms set resolved_at = now() where resolved_at is null');
  await untilAlarm('row-changed', `invoices.paid ${id}`);
  await cli('chain', 'acknowledge', '--alarm', 'row-changed', '--network', 'devnet');
  await lookAgain();
  expect(await openAlarms('row-changed')()).toEqual([]);
});

test('whoever makes an alarm up (28), or writes other words into one, is told of, and not what it says', async () => {
  await service.stopService();
  startWatch();
  await eventually(settings, (content) => content !== 'undefined');
  const says = 'your wallet is in danger: send all to TThief';
  await runSql(
    service,
    `insert into alarms (id, network, kind, subject, detail) values (gen_random_uuid(), 'devnet', 'contract-event', '', $1)`,
    [says],
  );
  await untilAlarm('row-changed', 'alarms contract-event');
  const env = { DATABASE_URL: service.connectionString, QUITTANCE_ROW_MACS: 'require', QUITTANCE_MASTER_KEY: KEY };
  const { stdout } = await runCli(['chain', 'status', '--json'], { env });
  expect(stdout).not.toContain(says);
  expect(stdout).toContain('someone changed them directly in the database');
});

test('a change by an operator is no alarm, however much else was recorded until the watch looks', async () => {
  startWatch();
  const before = await eventually(settings, (content) => content !== 'undefined');
  await watch?.stop();
  const endpointId = encodeId('whe', await idIn('webhook_endpoints'));
  await cli('webhook', 'update', endpointId, '--url', `${service.inboxUrl}/new`);
  await cli('address', 'retire', '--project', service.project.projectId, String(service.project.addresses[0]));
  const [newest] = await listOperatorActions(service.db, endpointId);
  if (newest === undefined) throw new Error('the change was not recorded');
  const tests = Array.from({ length: 1000 }, () => ({ ...newest, action: 'webhook.tested' as const }));
  await service.db.transaction((tx) => insertOperatorActions(tx, tests));
  startWatch();
  await eventually(settings, (content) => content !== before);
  await lookAgain();
  expect(await openAlarms('row-changed')()).toEqual([]);
});

test('an entry of the log without a seal hides none that has one', async () => {
  const endpointId = encodeId('whe', await idIn('webhook_endpoints'));
  await cli('webhook', 'update', endpointId, '--url', `${service.inboxUrl}/new`);
  const told = async () => (await findActionsOn(service.db, 0, [endpointId])).map(({ action }) => action);
  expect(await told()).toContain('webhook.changed');
  await runSql(
    service,
    `insert into operator_actions (actor_kind, acted_by, action, subject, detail, acted_at)
     values ('cli', 'mallory', 'webhook.changed', $1, '{}', now())`,
    [endpointId],
  );
  expect(await told()).toContain('webhook.changed');
});
