import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findDueAddresses } from '../../src/core/store/chain/balance-checks.ts';
import { findPassedBlock, insertPassedBlock } from '../../src/core/store/chain/passed-blocks.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, inboxOf } from '../support/service.ts';
import { type Order, tellStatus, World } from './world.ts';

/** Rows with a valid seal in the wrong place, and changes that only look valid beside old seals. */
const world = new World();
beforeAll(() => world.open(22));
afterAll(() => world.close());

const RIGHTS = ['plain', 'owner'] as const;
const as = (rights: (typeof RIGHTS)[number]) => (rights === 'owner' ? world.asOwner : world.asService).bind(world);

async function eventOf(order: Order, type = 'invoice.paid'): Promise<string> {
  const rows = await runSql(world.service, 'select id from events where invoice_id = $1 and type = $2', [
    order.uuid,
    type,
  ]);
  return String(rows[0]?.['id']);
}

const INTO_DELIVERIES = `insert into deliveries (event_id, endpoint_id, project_id, sequence, next_attempt_at, created_at)
   values ($1, $2, $3, 1, now() - interval '1 second', now() - interval '1 second')`;

test('an event of one project is signed for no endpoint of another', async () => {
  const order = await world.paidOrder();
  const other = world.shop();
  const event = await eventOf(order);
  const told = () => inboxOf(world.service, order.invoiceId);
  await eventually(told, (all) => all.some(({ body }) => body?.type === 'invoice.paid'));
  const before = (await told()).length;
  await expect(world.asService(INTO_DELIVERIES, [event, other.endpointId, other.id])).rejects.toThrow(
    'deliveries_tell_their_own_project',
  );
  await world.asOwner(INTO_DELIVERIES, [event, other.endpointId, other.id]);
  await world.untilNamed(event);
  const [row] = await runSql(world.service, 'select status from deliveries where event_id = $1 and endpoint_id = $2', [
    event,
    other.endpointId,
  ]);
  expect([row, (await told()).length]).toEqual([{ status: 'pending' }, before]);
});

test.each(RIGHTS)('a status that somebody wrote is shown to nobody (%s)', async (rights) => {
  const [found, over] = [await world.order(), await world.order()];
  await as(rights)(`begin; ${tellStatus(found.uuid, 'CONFIRMING', 1)}; commit`);
  await as(rights)(`begin; ${tellStatus(over.uuid, 'EXPIRED', 1)}; commit`);
  for (const order of [found, over]) {
    await world.expectShownToNobody(order);
    await world.untilNamed(order.uuid);
  }
});

test.each(RIGHTS)('a page that somebody withdrew is told from one that the shop did (%s)', async (rights) => {
  const order = await world.order();
  await as(rights)('update invoices set withdrawn_at = now() where id = $1', [order.uuid]);
  const page = await fetch(order.checkoutUrl);
  expect([page.status, await page.text()]).toEqual([503, expect.not.stringContaining('Do not send anything.')]);
  await world.untilNamed(order.uuid);
});

/** Statements that write a transfer for an invoice. A matched one also pays it, because the database refuses anything else. */
function plant(order: Order, id: string, txId: Buffer, kind: 'matched' | 'duplicate'): string {
  const bytes = `'\\x${txId.toString('hex')}'`;
  return `begin;
    insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
      amount_micro, kind, invoice_id, reserved_micro, producer, verified, nodes)
    select '${id}', project_id, network, address_id, ${bytes}, 0, 5, ${bytes}, now() + interval '1 hour', 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH',
      payable_micro, '${kind}', id, payable_micro, decode(repeat('4a', 20), 'hex'), 'proven', '{}' from invoices where id = '${order.uuid}';
    ${kind === 'matched' ? `${tellStatus(order.uuid, 'PAID', 1, id)};` : ''}
    commit`;
}

test.each(RIGHTS)('a transfer that somebody wrote is told to no payer (%s)', async (rights) => {
  const [waiting, paid] = [await world.order(), await world.paidOrder()];
  for (const [order, kind] of [[waiting, 'matched'] as const, [paid, 'duplicate'] as const]) {
    const [id, txId] = [uuidV7(Date.now(), randomBytes(10)), randomBytes(32)];
    await as(rights)(plant(order, id, txId, kind));
    const answer = await fetch(`${order.checkoutUrl}/lookup`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ transaction: txId.toString('hex') }),
    });
    expect([answer.status, (await answer.text()).includes('"paid"')]).toEqual([503, false]);
    const page = await (await fetch(order.checkoutUrl)).text();
    expect(page).not.toContain(txId.toString('hex'));
    await world.untilNamed(id);
  }
});

test.each(RIGHTS)(
  'a transfer that somebody wrote is told to no shop, and keeps no other from being told (%s)',
  async (rights) => {
    const paid = await world.paidOrder();
    const [id, txId] = [uuidV7(Date.now() - 60_000, randomBytes(10)), randomBytes(32)];
    await as(rights)(plant(paid, id, txId, 'duplicate'));
    await as(rights)('insert into untold_transfers select network, id, project_id from transfers where id = $1', [id]);
    await world.pay(paid);
    world.service.devnet.mineUntilSolid();
    const told = () => inboxOf(world.service, paid.invoiceId);
    await eventually(told, (all) => all.some(({ body }) => body?.type === 'transfer.duplicate'));
    expect((await told()).map(({ body }) => body?.data?.txId)).not.toContain(txId.toString('hex'));
    expect(await runSql(world.service, 'select from events where transfer_id = $1', [id])).toEqual([]);
    await world.untilNamed(id);
  },
);

/** Acts before any notification: in the transaction that records it. */
const fakeEvents = (projects: string[]) => `create function make_up() returns trigger language plpgsql as $$
   begin
     ${projects
       .map(
         (project) => `insert into events (id, project_id, network, type, transfer_id, sequence, body, created_at, mac)
       values (gen_random_uuid(), '${project}', 'devnet', 'transfer.unmatched', new.id, 1, '{}', now(), decode(repeat('00', 24), 'hex'));`,
       )
       .join('\n')}
     return null;
   end $$;
   create trigger make_up after insert on transfers for each row when (new.kind = 'unmatched') execute function make_up()`;

test('an event that somebody wrote keeps no shop from being told of a transfer', async () => {
  const [order, other] = [await world.order(), world.shop()];
  const { body } = await world.read(order);
  await world.asOwner(fakeEvents([other.id, order.shop.id]));
  const { usdtContract: contract } = world.service.devnet;
  await world.service.payer.transfer({ contract, to: body.payment.address, amountMicro: 3_333_333n });
  world.service.devnet.mineUntilSolid();
  const events = `from events e join transfers t on t.id = e.transfer_id where t.project_id = $1 and t.kind = 'unmatched'`;
  const told = () => runSql(world.service, `select ${events} and e.body <> '{}'`, [order.shop.id]);
  await eventually(told, ({ length }) => length === 1);
  await world.asOwner('drop function make_up cascade');
  expect(await runSql(world.service, `select ${events} and e.body = '{}'`, [order.shop.id])).toHaveLength(2);
});

test('an order that somebody wrote is named as the nearest one by no event', async () => {
  const order = await world.order();
  const { body } = await world.read(order);
  const columns = `project_id, api_key_id, address_id, created_at, expires_at, network, status, event_count`;
  await world.asService(
    `insert into invoices (id, external_id, payable_micro, requested_micro, checkout_token, idempotency_key, mac, ${columns})
     select gen_random_uuid(), 'victim-77', 70000123, 70000000, $2, 'made-up', decode(repeat('00', 24), 'hex'), ${columns}
     from invoices where id = $1`,
    [order.uuid, randomBytes(16).toString('base64url')],
  );
  const { usdtContract: contract } = world.service.devnet;
  await world.service.payer.transfer({ contract, to: body.payment.address, amountMicro: 69_000_123n });
  world.service.devnet.mineUntilSolid();
  const told = () =>
    runSql(world.service, `select body from events where project_id = $1 and type = 'transfer.unmatched'`, [
      order.shop.id,
    ]);
  const [event] = await eventually(told, ({ length }) => length === 1);
  expect(JSON.parse(String(event?.['body'])).data).toMatchObject({ amount: '69.000123' });
  expect(String(event?.['body'])).not.toContain('victim-77');
});

test.each(RIGHTS)('a payment that nobody took back keeps its receipt from nobody unnoticed (%s)', async (rights) => {
  const order = await world.paidOrder();
  const receipt = async () => (await fetch(`${order.checkoutUrl}/receipt.json`)).status;
  expect(await receipt()).toBe(200);
  const [row] = await runSql(world.service, 'select id from transfers where invoice_id = $1', [order.uuid]);
  await as(rights)(
    `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason)
     select id, project_id, invoice_id, block_id, now(), 'anna', 'x' from transfers where invoice_id = $1`,
    [order.uuid],
  );
  // No one has requested it yet.
  await world.untilNamed(`transfer_annulments ${row?.['id']}`);
  expect(await receipt()).toBe(503);
});

test.each(RIGHTS)('a block that nobody let pass does not pass (%s)', async (rights) => {
  const number = rights === 'plain' ? 7001 : 7002;
  await as(rights)(
    `insert into passed_blocks (network, number, block_id, digest, passed_at, passed_by, reason)
     values ('devnet', $1, sha256('a'), sha256('b'), now(), 'anna', 'x')`,
    [number],
  );
  expect(await findPassedBlock(world.service.db, 'devnet', number)).toBeNull();
  await world.untilNamed(`passed_blocks ${number}`);
});

test('a block that an operator let pass does, however many nobody let pass stand before it', async () => {
  const { db } = world.service;
  const bytes = (byte: string) => byte.repeat(32);
  const block = { number: 7003, blockId: bytes('0a'), digest: bytes('0b'), passedBy: 'anna', reason: 'x' };
  await insertPassedBlock(db, 'devnet', { ...block, passedAt: unixMs(1_700_000_000_000) });
  await world.asService(
    `insert into passed_blocks (network, number, block_id, digest, passed_at, passed_by, reason)
     select 'devnet', $1, sha256('a'), sha256(n::text::bytea), now(), 'anna', 'x' from generate_series(1, 2000) n`,
    [block.number],
  );
  expect(await findPassedBlock(db, 'devnet', block.number)).toMatchObject({ blockId: block.blockId });
});

const PUT_OFF = unlistedStatement(
  '',
  {},
  `insert into balance_checks (address_id, project_id, network, opening_micro, opening_block, good_block, checked_block, balance_micro,
     expected_micro, node, checked_at, due_at)
   select id, project_id, network, 0, 0, 0, 0, 0, 0, 'x', now(), '2199-01-01' from addresses where project_id = $1
   on conflict (address_id) do update set due_at = excluded.due_at`,
);

test('a comparison with the chain that somebody put off is due', async () => {
  const { addresses, id } = world.shop();
  const due = await world.service.db.transaction(async (tx) => {
    await tx.run(PUT_OFF, [id]);
    // The watcher doesn't see it yet; it would compare the balance and replace the row.
    return findDueAddresses(tx, 'devnet', unixMs(Date.now()), 1000);
  });
  expect(due.map(({ address }) => address)).toEqual(expect.arrayContaining(addresses));
});

// Runs last, because the watcher waits before an order that was changed.
test('a status of before is shown to nobody with the seal that it had, and one that is put back anew is found', async () => {
  const order = await world.order();
  await world.pay(order);
  world.service.devnet.mine();
  const read = async () => (await world.read(order)).body?.status;
  await eventually(read, (status) => status === 'CONFIRMING');
  const set = `update invoices set status = 'PENDING', event_count = $2 where id = $1`;
  await expect(world.asService(set, [order.uuid, 0])).rejects.toThrow('event_count of invoices never goes back');
  await world.asService(`begin; ${tellStatus(order.uuid, 'PENDING', 2)}; commit`);
  await world.expectShownToNobody(order);
  await world.asOwner(set.replace('$2', '$2, paid_mac = null'), [order.uuid, 0]);
  await world.lookAgain();
  await world.untilNamed(`invoices.status ${order.uuid}`);
  expect(decodeId('inv', order.invoiceId)).toBe(order.uuid);
});
