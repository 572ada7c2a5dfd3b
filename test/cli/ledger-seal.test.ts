import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import {
  createInvoice,
  payExactly,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
} from '../support/service.ts';
import { runCli } from './run-cli.ts';

let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterEach(() => service.stop());

const KEY = TEST_KEY_RING.current().bytes.toString('base64');
const env = (extra: NodeJS.ProcessEnv = {}) => ({
  ...{ DATABASE_URL: service.connectionString, DATABASE_OWNER_URL: service.ownerString },
  ...{ QUITTANCE_MASTER_KEY: KEY, ...extra },
});
const seal = (...options: string[]) => runCli(['ledger', 'seal', '--json', ...options], { env: env() });
const check = () => seal('--check');

const TABLES = [
  ...['projects', 'account_keys', 'addresses', 'api_keys', 'webhook_endpoints', 'receipt_keys', 'producer_sets'],
  ...['chain_cursors', 'invoices', 'transfers', 'events', 'inventory_pages', 'operator_actions'],
];

/** Changes rows as the tables' owner, bypassing every guard. */
async function pastGuards(table: string, text: string, values: unknown[] = []): Promise<void> {
  await runSql(service, `alter table ${table} disable trigger user`);
  await runSql(service, text, values);
  await runSql(service, `alter table ${table} enable trigger user`);
  if (table === 'invoices') await runSql(service, 'alter table invoices disable trigger invoices_of_a_closed_ledger');
}

/** Removes the seals, as in a release before seals. */
async function forgetSeals(): Promise<void> {
  await service.stopService();
  for (const table of TABLES) {
    const also = { invoices: ', paid_mac = null', projects: ', limits_mac = null' }[table] ?? '';
    await pastGuards(table, `update ${table} set mac = null${also}`);
  }
  await pastGuards('ledger_proofs', 'delete from ledger_proofs');
}

async function pay(): Promise<string> {
  const { body } = await createInvoice(service);
  await payExactly(service, body.invoiceId);
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  return body.invoiceId;
}

const idOf = (invoiceId: string) => decodeId('inv', invoiceId) ?? '';
const countOf = (json: { tables: Record<string, number>[] }, member: string) =>
  json.tables.reduce((sum, table) => sum + Number(table[member]), 0);

test('a ledger that is older than the seals is sealed once, and is read by who requires them', async () => {
  const paid = await pay();
  const { body: open } = await createInvoice(service);
  await forgetSeals();

  const before = await check();
  expect(before).toMatchObject({ code: 1, json: { good: false } });
  expect(countOf(before.json, 'sealed')).toBe(0);
  const unsealed = countOf(before.json, 'unsealed');
  expect(unsealed).toBeGreaterThan(10);

  const adviceIn = async (rowMacs: string) =>
    (await runCli(['ledger', 'seal', '--check'], { env: env({ QUITTANCE_ROW_MACS: rowMacs }) })).stderr;
  expect(await adviceIn('warn')).toContain('see "Rows have no seal" in docs/guides/tampering.md');

  expect(await seal()).toMatchObject({ code: 2, json: { error: { message: /say --yes/ } } });
  const sealed = await seal('--yes', '--by', 'anna');
  expect(sealed).toMatchObject({ code: 0, stderr: expect.stringContaining('quittance reconcile') });
  expect(sealed.json).toMatchObject({ good: true, wrong: [] });
  expect(countOf(sealed.json, 'resealed')).toBe(unsealed);
  expect(await adviceIn('warn')).toContain('every row has a seal: set QUITTANCE_ROW_MACS=require');
  expect(await adviceIn('ledger')).toMatch(/every row has a seal$/m);
  expect(await runSql(service, `select acted_by from operator_actions where action = 'ledger.sealed'`)).toEqual([
    { acted_by: 'anna' },
  ]);

  await service.restart();
  expect(await readInvoice(service, paid)).toMatchObject({ status: 200, body: { status: 'PAID' } });
  expect(await readInvoice(service, open.invoiceId)).toMatchObject({ status: 200 });
  expect(await readInvoice(service, await pay())).toMatchObject({ status: 200 });
  expect(await runSql(service, `select subject from alarms where kind = 'row-changed'`)).toEqual([]);

  // Run a second time beside the service, there is nothing left to do.
  const again = await seal('--yes');
  expect(again).toMatchObject({ code: 0 });
  expect(countOf(again.json, 'resealed')).toBe(0);
});

test('a row that was changed is left as it is and named, until somebody has looked at it and accepts it', async () => {
  const { body } = await createInvoice(service);
  const id = idOf(body.invoiceId);
  // The service's watch would raise an alarm, and a row with an alarm can be accepted again.
  await service.stopService();
  await pastGuards('invoices', 'update invoices set requested_micro = requested_micro - 1 where id = $1', [id]);
  const macOf = async () =>
    (await runSql(service, `select encode(mac, 'hex') as mac from invoices where id = $1`, [id]))[0];
  const mac = await macOf();

  for (const done of [await seal('--yes'), await check()]) {
    expect(done).toMatchObject({ code: 1, json: { good: false, wrong: [{ table: 'invoices', id, kind: 'changed' }] } });
  }
  expect(await macOf()).toEqual(mac);
  const name = `invoices:${id}`;
  const refused = await seal('--accept', name);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/requestedMicro +\d+/) });
  expect(await macOf()).toEqual(mac);
  expect(await seal('--accept', name, '--yes')).toMatchObject({
    code: 0,
    json: { table: 'invoices', id, was: 'changed' },
  });
  expect(await seal('--accept', name, '--yes')).toMatchObject({ code: 4, json: { error: { code: 'CONFLICT' } } });
  await service.restart();
  expect(await readInvoice(service, body.invoiceId)).toMatchObject({ status: 200 });
  expect(await check()).toMatchObject({ code: 0 });
  expect(await runSql(service, `select subject from operator_actions where action = 'row.accepted'`)).toEqual([
    { subject: name },
  ]);

  expect(
    await seal('--accept', `invoices:${idOf((await createInvoice(service)).body.invoiceId).replace(/.$/, 'x')}`),
  ).toMatchObject({
    code: 3,
  });
  expect(await seal('--accept', 'invoices')).toMatchObject({ code: 2, json: { error: { code: 'INVALID_ARGUMENT' } } });
});

test('cut off in the middle it goes on, and two at once seal each row once', async () => {
  for (let made = 0; made < 5; made += 1) await createInvoice(service);
  await forgetSeals();
  await runSql(
    service,
    `create function cut_off() returns trigger language plpgsql as $$ begin raise exception 'cut off'; end $$;
     create trigger cut before update on invoices for each row execute function cut_off()`,
  );
  expect(await seal('--yes')).toMatchObject({ code: 1, json: { error: {} } });
  const half = await check();
  expect(countOf(half.json, 'sealed')).toBeGreaterThan(3);
  expect(half.json.tables).toContainEqual(expect.objectContaining({ table: 'invoices', sealed: 0, unsealed: 5 }));
  await runSql(service, 'drop trigger cut on invoices; drop function cut_off()');

  const left = countOf(half.json, 'unsealed');
  const both = await Promise.all([seal('--yes'), seal('--yes')]);
  expect(both).toMatchObject([{ code: 0 }, { code: 0 }]);
  expect(both.reduce((sum, { json }) => sum + countOf(json, 'resealed'), 0)).toBe(left);
  expect(await check()).toMatchObject({ code: 0, json: { good: true } });
});

test('a rotation of the master key seals every row anew, and keeps the former key until it has', async () => {
  const invoiceId = await pay();
  const { body } = await createInvoice(service);
  await service.stopService();
  const { id: former } = TEST_KEY_RING.current();
  const next = createMasterKey();
  const text = next.bytes.toString('base64');
  const both = { QUITTANCE_MASTER_KEY: `${text},${KEY}` };
  const run = async (command: string, extra: NodeJS.ProcessEnv) =>
    (await runCli(['master-key', command, '--json'], { env: env(extra) })).json;
  const changed = `update invoices set requested_micro = requested_micro - 1 where id = $1`;
  await pastGuards('invoices', changed, [idOf(body.invoiceId)]);

  expect(await run('status', both)).toMatchObject({
    keys: [{ sealsRows: null }, { keyId: former, sealsRows: true, canBeDropped: false }],
  });
  const withoutOwner = await run('rotate', { ...both, DATABASE_OWNER_URL: '' });
  expect(withoutOwner).toMatchObject({ rows: 0, droppable: [], needed: [{ keyId: former }] });
  const rotated = await run('rotate', both);
  expect(rotated).toMatchObject({ rows: withoutOwner.needed[0].rows, droppable: [former], needed: [] });
  expect(await run('rotate', both)).toMatchObject({ rows: 0, droppable: [former] });
  // A changed row isn't sealed again, and needs no key.
  const checked = await runCli(['ledger', 'seal', '--check', '--json'], { env: env({ QUITTANCE_MASTER_KEY: text }) });
  expect(checked.json.wrong).toEqual([{ table: 'invoices', id: idOf(body.invoiceId), kind: 'unknown-key' }]);
  // The audit log entries of the three rotations were sealed with the new key immediately.
  expect(countOf(checked.json, 'sealed')).toBe(rotated.rows + 3);
  const [row] = await runSql(
    service,
    `select encode(substring(paid_mac for 8), 'hex') as key from invoices where id = $1`,
    [idOf(invoiceId)],
  );
  expect(row).toEqual({ key: next.id });
});

test('who may not seal, or has no key to do it with, is told what to do', async () => {
  const run = (extra: NodeJS.ProcessEnv) =>
    runCli(['ledger', 'seal', '--yes', '--json'], { env: env(extra) }).then(({ json }) => json.error);
  expect(await run({ DATABASE_OWNER_URL: '' })).toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('DATABASE_OWNER_URL'),
  });
  expect(await run({ QUITTANCE_ROW_MACS: 'off' })).toMatchObject({ code: 'CONFIG_INVALID' });
  const other = randomBytes(32).toString('base64');
  expect(await run({ QUITTANCE_MASTER_KEY: other })).toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('did not seal any row of this ledger'),
  });
});
