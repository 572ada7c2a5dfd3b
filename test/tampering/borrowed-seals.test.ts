import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runSql } from '../contract/sql.ts';
import { createTestProject } from '../support/service.ts';
import { World } from './world.ts';

/** Attempts by an attacker with every seal in the database but no key: each changes an order and gives it another seal. */
const SEALS: readonly (readonly [what: string, sql: string])[] = [
  ['its own', 'mac'],
  ['none', 'null'],
  ['the first half of its own', 'substring(mac for 16)'],
  ['its own but for the last byte', 'substring(mac for octet_length(mac) - 1)'],
  ['its own and more', `mac || '\\x00'::bytea`],
  ['the one of another order', '(select o.mac from invoices o where o.id <> i.id limit 1)'],
  ['the one that says it is paid', '(select paid_mac from invoices where paid_mac is not null limit 1)'],
  ['the one of a transfer', '(select mac from transfers limit 1)'],
  ['the one of an event', '(select mac from events limit 1)'],
  ['the one of its project', '(select mac from projects p where p.id = i.project_id)'],
  ['one of a key that nobody has', `decode('${randomBytes(24).toString('hex')}', 'hex')`],
  ['one of the right key, and chance', `substring(mac for 8) || decode('${randomBytes(16).toString('hex')}', 'hex')`],
];

/** The same in other tables: the change to a row, and how to find the row of an order. */
const CHANGES: readonly (readonly [table: string, change: string, of: string])[] = [
  ['transfers', `from_address = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH'`, 'invoice_id = $1'],
  ['events', `body = replace(body, 'USDT', 'USDC')`, `invoice_id = $1 and type = 'invoice.paid'`],
  ['api_keys', `secret_sha256 = sha256('x')`, 'project_id = $2'],
  ['api_keys', `scopes = '{create,webhooks}'`, 'project_id = $2'],
  ['webhook_endpoints', `url = 'https://thief.example/'`, 'project_id = $2'],
  ['projects', `support_contact = 'thief@example'`, 'id = $2'],
];

const world = new World();
beforeAll(async () => {
  await world.open(SEALS.length + 2 + CHANGES.length);
  await world.paidOrder();
  // Otherwise this constraint would refuse a seal of another length first.
  await world.asOwner(`do $$ declare c record; begin
    for c in select conname from pg_constraint where conrelid = 'invoices'::regclass and contype = 'c' and pg_get_constraintdef(oid) like '%mac%' loop
      execute format('alter table invoices drop constraint %I', c.conname);
    end loop; end $$`);
});
afterAll(() => world.close());

test.each(SEALS)('an order that was changed is shown to nobody with a seal that is %s', async (_, seal) => {
  const order = await world.order();
  await world.asOwner(`update invoices i set payable_micro = payable_micro + 1, mac = ${seal} where id = $1`, [
    order.uuid,
  ]);
  await world.expectShownToNobody(order);
  await world.untilNamed(order.uuid);
});

test('an order with its seal that is moved to another project is shown to neither', async () => {
  const order = await world.order();
  const other = await createTestProject(world.service.db, { addressCount: 0 });
  await world.asOwner('update invoices set project_id = $2 where id = $1', [order.uuid, other.id]);
  const read = await world.read({ ...order, shop: { ...other, endpointId: '' } });
  expect(read).toMatchObject({ status: 503 });
  expect((await world.read(order)).status).toBe(404);
  await world.untilNamed(order.uuid);
});

test.each(CHANGES)(
  'a row of %s that was changed is named, though it has the seal of another row',
  async (table, change, of) => {
    const order = await world.paidOrder();
    const row = `select id from ${table} where ${of} and $1::uuid is not null and $2::uuid is not null limit 1`;
    const [{ id } = { id: null }] = await runSql(world.service, row, [order.uuid, order.shop.id]);
    const other = `(select o.mac from ${table} o where o.id <> t.id and o.mac is not null limit 1)`;
    await world.asOwner(`update ${table} t set ${change}, mac = ${other} where t.id = $1`, [id]);
    await world.untilNamed(String(id));
  },
);
