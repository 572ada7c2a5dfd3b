import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { runSql } from '../contract/sql.ts';
import { createInvoice, createTestProject } from '../support/service.ts';
import { type Attempt, type Order, tellStatus, tryGroup, World } from './world.ts';

const THIEF = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const world = new World();
const { uuid } = { uuid: () => uuidV7(Date.now(), randomBytes(10)) };

let paid: Order[];

/** Changes a new order ($1) with a statement. The order must then be hidden from everyone, and an alarm must name it. */
const onOrder =
  (text: string, values: unknown[] = []): Attempt =>
  async (as) => {
    const order = await world.order();
    await as(text, [order.uuid, ...values]);
    return { holds: () => world.expectShownToNobody(order), named: order.uuid };
  };

/** Changes the address of a new order ($1). */
const onAddress =
  (guard: string, text: (address: string) => string): Attempt =>
  async (as, rights) => {
    const order = await world.order();
    const [own] = order.shop.addresses;
    const [row] = await runSql(world.service, 'select id from addresses where address = $1', [own]);
    await as(`${rights === 'owner' ? guard : ''}; ${text(String(own))}`);
    return {
      holds: () => world.expectShownToNobody(order),
      named: guard === '' ? String(row?.['id']) : `address-damaged ${own}`,
    };
  };

/** Orders on a test network are sealed with their deadline; on a local network, the sandbox may change it. */
const onDeadline: Attempt = async (as) => {
  const shop = await createTestProject(world.service.db, { network: 'nile' });
  const { status, body } = await createInvoice(world.service, { apiKey: shop.apiKey });
  expect(status).toBe(201);
  const id = decodeId('inv', body.invoiceId) ?? '';
  const order = { ...body, uuid: id, shop: { ...shop, endpointId: '' } };
  await as(`update invoices set expires_at = expires_at + interval '10 years' where id = $1`, [id]);
  return { holds: () => world.expectShownToNobody(order), named: id };
};

const swapLinks: Attempt = async (as) => {
  const [one, other] = [await world.order(), await world.order()];
  const [a, b] = [one.checkoutUrl, other.checkoutUrl].map((url) => url.split('/').at(-1));
  const link = (order: Order, token: unknown) =>
    `update invoices set checkout_token = '${token}' where id = '${order.uuid}'`;
  await as(`${link(one, randomBytes(16).toString('base64url'))}; ${link(other, a)}; ${link(one, b)}`);
  return {
    named: one.uuid,
    holds: async () => {
      await world.expectShownToNobody(one);
      await world.expectShownToNobody(other);
    },
  };
};

const paidAlone: Attempt = async (as, rights) => {
  const order = await world.order();
  const guard = rights === 'owner' ? 'alter table invoices drop constraint invoices_paid_by_transfer;' : '';
  await as(`${guard} update invoices set status = 'PAID' where id = '${order.uuid}'`);
  return { holds: () => world.expectShownToNobody(order), named: `invoices.paid ${order.uuid}` };
};

const paidByNothing: Attempt = async (as) => {
  const order = await world.order();
  const transferId = uuid();
  // The database accepts a payment only in a single transaction, and with its event.
  await as(
    `begin; insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
       amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes)
     select '${transferId}', project_id, network, address_id, sha256('${transferId}'), 0, 5, sha256('made up'), now() + interval '1 day', '${THIEF}', payable_micro,
       'matched', id, payable_micro, decode(repeat('4a', 20), 'hex'), 'proven', '{}' from invoices where id = '${order.uuid}';
     ${tellStatus(order.uuid, 'PAID', 1, transferId)}; commit`,
  );
  return { holds: () => world.expectShownToNobody(order), named: `invoices.paid ${order.uuid}` };
};

/** `withTransfer` deletes the transfer too. */
const paidTakenBack =
  (index: number, withTransfer: boolean): Attempt =>
  async (as) => {
    const { uuid: id } = paid[index] as Order;
    const [row] = await runSql(world.service, 'select id from transfers where invoice_id = $1', [id]);
    const transfer = `transfers:${row?.['id']}`;
    await as(`update invoices set status = 'EXPIRED', paid_transfer_id = null, paid_mac = null where id = $1`, [id]);
    if (withTransfer) await as('delete from transfers where invoice_id = $1', [id]);
    return { named: withTransfer ? transfer : `invoices.paid ${id}` };
  };

const orderDeleted: Attempt = async (as) => {
  const order = await world.order();
  await world.lookAgain();
  await as('delete from invoices where id = $1', [order.uuid]);
  return { named: `invoices:${order.uuid}` };
};

tryGroup(
  world,
  'orders',
  {
    shops: 32,
    prepare: async () => {
      paid = [await world.paidOrder(), await world.paidOrder()];
      await world.expectWell();
    },
  },
  {
    1: onAddress(
      'alter table addresses drop constraint addresses_text',
      (own) => `update addresses set address = '${THIEF}' where address = '${own}'`,
    ),
    2: onAddress('', (own) => {
      const account = `'\\x${randomBytes(20).toString('hex')}'`;
      return `update addresses set account = ${account}, address = tron_address(${account}) where address = '${own}'`;
    }),
    // Any address of another project that no order uses: on one in use, the amount may be reserved already.
    5: onOrder(
      `update invoices i set address_id = (select id from addresses a
         where a.project_id <> i.project_id and not exists (select from invoices o where o.address_id = a.id) limit 1) where id = $1`,
    ),
    6: onOrder('update invoices set payable_micro = payable_micro + 1 where id = $1'),
    7: onOrder('update invoices set requested_micro = 1 where id = $1'),
    8: swapLinks,
    9: onDeadline,
    10: paidAlone,
    11: paidByNothing,
    12: paidTakenBack(0, true),
    13: paidTakenBack(1, false),
    14: orderDeleted,
  },
);
