import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeId, encodeId } from '../../src/core/domain/ids.ts';
import { openExternalCheckpoint } from '../../src/core/payments/external-checkpoint.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { createInvoice, eventually, payableOf, startTestService, type TestService } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';
import { type FastWatch, startFastWatch } from './fast-watch.ts';

/** Attempts to blind the watches before another attack. */
let service: TestService;
let watch: FastWatch | null = null;
let dataDir = '';
beforeEach(async () => {
  watch = null;
  dataDir = await mkdtemp(join(tmpdir(), 'quittance-watches-'));
  service = await startTestService({ config: { rowMacs: 'require' } });
  // The service has its own watch.
  await service.stopService();
});
afterEach(async () => {
  await watch?.stop();
  await service.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function asPlain(text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: service.connectionString });
  await client.connect();
  await client.query(text, values).finally(() => client.end());
}

const openAlarms = async () =>
  (
    await runSql(
      service,
      // A busy machine may lag behind the chain.
      `select kind, subject from alarms where (resolved_at is null or needs_closing and closed_mac is null) and kind <> 'blind'`,
    )
  ).map(({ kind, subject }) => `${kind} ${subject}`);
const untilAlarm = (alarm: string) => eventually(openAlarms, (alarms) => alarms.includes(alarm));
const value = async (text: string, values: unknown[] = []) =>
  String(Object.values((await runSql(service, text, values))[0] ?? {})[0]);
const cli = async (...args: string[]) => {
  const env = {
    ...{ DATABASE_URL: service.connectionString, DATABASE_OWNER_URL: service.ownerString },
    QUITTANCE_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
    QUITTANCE_WEBHOOK_TARGETS: 'local',
  };
  expect(await runCli([...args, '--json'], { env })).toMatchObject({ code: 0 });
};

const ACTION = 'insert into operator_actions (action, subject, detail, acted_by, acted_at)';
/** A row that makes a watch's statements fail: its table, the statement, and the database's refusal. */
const BLINDING = [
  ['an infinite time in the audit log', 'operator_actions', `${ACTION} values ('a.b', 'c', '{}', 'anna', 'infinity')`],
  [
    'a time beyond all dates in the audit log',
    'operator_actions',
    `${ACTION} values ('a.b', 'c', '{}', 'anna', '294000-01-01')`,
  ],
  [
    'JSON of 3,000 levels in the audit log',
    'operator_actions',
    `${ACTION} values ('alarm.acknowledged', 'devnet', ('{"a":' || repeat('[', 3000) || repeat(']', 3000) || '}')::jsonb, 'anna', now())`,
  ],
  [
    'an infinite time of an API key',
    'api_keys',
    `insert into api_keys (id, project_id, network, name, secret_sha256, expires_at)
     select gen_random_uuid(), id, network, 'x', decode('${'ab'.repeat(32)}', 'hex'), 'infinity' from projects limit 1`,
  ],
] as const;
const REFUSED = /_finite"/;

test.each(someCases(BLINDING, 2))('%s hides nothing from the watches, whoever wrote it', async (_, table, text) => {
  const plain = await asPlain(text).catch((error: Error) => error);
  if (plain instanceof Error) expect(plain.message).toMatch(REFUSED);
  await runSql(
    service,
    `begin; alter table ${table} drop constraint ${table}_finite; ${text};
     alter table ${table} add constraint ${table}_finite check (isfinite(${table === 'api_keys' ? 'expires_at' : 'acted_at'})) not valid; commit`,
  );
  const { id } = await listedInvoice();
  await runSql(
    service,
    'begin; alter table invoices disable trigger all; delete from invoices; alter table invoices enable trigger all; commit',
  );
  await untilAlarm(`rows-missing invoices:${id}`);
  const before = await value(`select encode(content, 'hex') from inventory_pages where subject = 'settings'`);
  expect(before).not.toBe('undefined');
  if (table === 'api_keys') {
    const planted = await value(`select id from api_keys where name = 'x'`);
    await untilAlarm(`row-changed api_keys ${planted}`);
  }
});

/** Creates an invoice and waits until the watch has listed it. */
async function listedInvoice(): Promise<{ id: string }> {
  await service.restart();
  const { body } = await createInvoice(service);
  await service.stopService();
  watch = startFastWatch(service);
  const listed = () => value(`select count(*) from inventory_pages where subject = 'invoices'`);
  await eventually(listed, (count) => count === '1');
  return { id: decodeId('inv', body.invoiceId) ?? '' };
}

test('a watch that finishes no look is an alarm until it does, and what fails in a look stops no other part of it', async () => {
  watch = startFastWatch(service, undefined, { stallTickMs: 50 });
  await watch.lookAgain();
  await runSql(service, 'alter table webhook_endpoints rename column url to place');
  await untilAlarm('watch-stalled inventory');
  const id = randomUUID();
  await asPlain(
    `insert into events (id, project_id, network, type, sequence, body, created_at, position)
     select $1, id, 'devnet', 'invoice.paid', 900, '{}', now(), 900 from projects limit 1`,
    [id],
  );
  await untilAlarm(`row-changed events ${id}`);
  await runSql(service, 'alter table webhook_endpoints rename column place to url');
  await eventually(openAlarms, (alarms) => !alarms.includes('watch-stalled inventory'));
});

test.each(['while another process leads', 'while no process runs'])(
  'whoever puts back the former URL of a webhook with the page of the inventory, %s, leaves alarms',
  async (when) => {
    let isLeader = true;
    const start = async () => {
      const mark = await openExternalCheckpoint(dataDir, 'inventory-head-devnet.json');
      watch = startFastWatch(service, undefined, { isLeader: () => isLeader, mark });
    };
    await start();
    const page = () => value(`select encode(content, 'hex') from inventory_pages where subject = 'settings'`);
    const before = await eventually(page, (content) => content !== 'undefined');
    await watch?.lookAgain();
    await runSql(
      service,
      `create table kept as select e.id, e.url, e.mac, p.id as page, p.content, p.mac as page_mac
       from webhook_endpoints e, inventory_pages p where p.subject = 'settings';
       grant select on kept to public`,
    );
    const id = await value('select id from kept');
    await cli('webhook', 'update', encodeId('whe', id), '--url', `${service.inboxUrl}/new`);
    await eventually(page, (content) => content !== before);
    await watch?.lookAgain();
    expect(await openAlarms()).toEqual([]);
    if (when === 'while no process runs') await watch?.stop();
    else isLeader = false;
    await asPlain('update inventory_pages p set content = k.content, mac = k.page_mac from kept k where p.id = k.page');
    await asPlain('update webhook_endpoints e set url = k.url, mac = k.mac from kept k where e.id = k.id');
    if (when === 'while no process runs') await start();
    isLeader = true;
    await untilAlarm('rows-missing inventory_pages:settings');
    await untilAlarm(`row-changed webhook_endpoints ${id}`);
    // If someone closes an alarm about a one-time event, it's opened again.
    await watch?.lookAgain();
    await asPlain(`update alarms set resolved_at = now() where resolved_at is null`);
    await untilAlarm('rows-missing inventory_pages:settings');
  },
);

test('alarms that somebody makes up in great number hide none that is real', async () => {
  const { id } = await listedInvoice();
  await asPlain(
    `insert into alarms (id, network, kind, subject, detail, raised_at)
     select gen_random_uuid(), 'devnet', 'contract-event', n::text, 'send all to TThief', now() - interval '1 year'
     from generate_series(1, 1200) n`,
  );
  await runSql(
    service,
    'begin; alter table invoices disable trigger all; delete from invoices; alter table invoices enable trigger all; commit',
  );
  await untilAlarm(`rows-missing invoices:${id}`);
  const env = {
    ...{ DATABASE_URL: service.connectionString, QUITTANCE_ROW_MACS: 'require' },
    QUITTANCE_MASTER_KEY: TEST_KEY_RING.current().bytes.toString('base64'),
  };
  const { stdout } = await runCli(['chain', 'status', '--json'], { env });
  const alarms: { kind: string; subject: string; detail: string }[] = JSON.parse(stdout).alarms;
  expect(alarms.map(({ subject }) => subject)).toContain(`invoices:${id}`);
  expect(stdout).not.toContain('TThief');
  expect(alarms.filter(({ detail }) => detail.includes('1200 of the alarms'))).toHaveLength(1);
});

test('rows that somebody plants in great number hide none that comes a minute later', async () => {
  let aheadMs = 0;
  watch = startFastWatch(service, () => aheadMs);
  const plant = async (count: number) => {
    const ids = Array.from({ length: count }, () => randomUUID());
    await asPlain(
      `with taken as (select coalesce(max(position), 0) as position from events)
       insert into events (id, project_id, network, type, sequence, body, created_at, position)
       select one.id, p.id, 'devnet', 'invoice.paid', taken.position + place, '{}', now(), taken.position + place
       from unnest($1::uuid[]) with ordinality one (id, place), taken, (select id from projects limit 1) p`,
      [ids],
    );
    return ids;
  };
  await plant(60);
  await untilAlarm('row-changed events');
  const named = async () => (await openAlarms()).filter((alarm) => alarm.startsWith('row-changed events '));
  // Each alarm is raised on its own.
  await eventually(named, ({ length }) => length >= 20);
  await watch.lookAgain();
  expect(await named()).toHaveLength(20);
  aheadMs = 60_000;
  const [later] = await plant(1);
  await untilAlarm(`row-changed events ${later}`);
});

/** Creates an invoice's event and delivers it to the project's endpoint. Returns their UUIDs. */
async function deliveredEvent(): Promise<{ event: string; endpoint: string }> {
  await service.restart();
  await createInvoice(service);
  service.devnet.mineUntilSolid();
  const { payer, devnet } = service;
  const { body } = await createInvoice(service);
  const { address, amountMicro } = await payableOf(service, body.invoiceId);
  await payer.transfer({ contract: devnet.usdtContract, to: address, amountMicro });
  devnet.mineUntilSolid();
  const delivered = () =>
    runSql(service, `select event_id, endpoint_id from deliveries where status = 'delivered' limit 1`);
  const [row] = await eventually(delivered, ({ length }) => length === 1);
  await service.stopService();
  return { event: String(row?.['event_id']), endpoint: String(row?.['endpoint_id']) };
}

test('whoever disables an endpoint by hand leaves an alarm, and whoever does it as they should leaves none', async () => {
  const id = await value('select id from webhook_endpoints limit 1');
  const page = () => value(`select encode(content, 'hex') from inventory_pages where subject = 'settings'`);
  watch = startFastWatch(service);
  const before = await eventually(page, (content) => content !== 'undefined');
  await cli('webhook', 'disable', encodeId('whe', id));
  const disabled = await eventually(page, (content) => content !== before);
  await cli('webhook', 'enable', encodeId('whe', id));
  await eventually(page, (content) => content !== disabled);
  await watch.lookAgain();
  expect(await openAlarms()).toEqual([]);
  await asPlain('update webhook_endpoints set disabled_at = now() where id = $1', [id]);
  await untilAlarm(`row-changed webhook_endpoints ${id}`);
});

test('whoever keeps an event from an endpoint is found: put off, called delivered, or never planned', async () => {
  const { event, endpoint } = await deliveredEvent();
  const alarm = `row-changed deliveries ${event} ${endpoint}`;
  watch = startFastWatch(service, () => 0);
  await watch.lookAgain();
  expect(await openAlarms()).toEqual([]);
  const closed = async () => {
    await watch?.stop();
    await runSql(service, 'update alarms set resolved_at = now() where resolved_at is null');
    watch = startFastWatch(service, () => 0);
  };
  // Postponed for years: it becomes due again.
  await asPlain(
    `update deliveries set status = 'pending', finished_at = null, next_attempt_at = now() + interval '10 years' where event_id = $1`,
    [event],
  );
  await untilAlarm(alarm);
  expect(
    await value('select next_attempt_at < now() + interval $$1 hour$$ from deliveries where event_id = $1', [event]),
  ).toBe('true');
  await asPlain(`update deliveries set status = 'delivered', attempt_count = attempt_count + 1 where event_id = $1`, [
    event,
  ]);
  await closed();
  await untilAlarm(alarm);
  await runSql(
    service,
    `begin; alter table delivery_attempts disable trigger all; alter table deliveries disable trigger all;
     delete from delivery_attempts where event_id = '${event}'; delete from deliveries where event_id = '${event}';
     alter table delivery_attempts enable trigger all; alter table deliveries enable trigger all; commit`,
  );
  await closed();
  await untilAlarm(alarm);
});
