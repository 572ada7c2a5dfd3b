import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId } from '../../src/domain/ids.ts';
import { runSql } from '../contract/sql.ts';
import { eventually, inboxOf } from '../support/service.ts';
import { type Order, World } from './world.ts';

/** Rows that are as they were sealed, where they do not belong; and what stands beside the seals of before. */
const world = new World();
beforeAll(() => world.open(14));
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
  await as(rights)(`update invoices set status = 'CONFIRMING' where id = $1`, [found.uuid]);
  await as(rights)(`update invoices set status = 'EXPIRED', event_count = 1 where id = $1`, [over.uuid]);
  for (const order of [found, over]) {
    await world.expectShownToNobody(order);
    await world.untilNamed(order.uuid);
  }
});

test('a status of before is shown to nobody with the seal that it had, and one that is put back anew is found', async () => {
  const order = await world.order();
  await world.pay(order);
  world.service.devnet.mine();
  const read = async () => (await world.read(order)).body?.status;
  await eventually(read, (status) => status === 'CONFIRMING');
  const set = `update invoices set status = 'PENDING', event_count = $2 where id = $1`;
  await expect(world.asService(set, [order.uuid, 0])).rejects.toThrow('event_count of invoices never goes back');
  await world.asService(set, [order.uuid, 1]);
  await world.expectShownToNobody(order);
  await world.asOwner(set.replace('$2', '$2, paid_mac = null'), [order.uuid, 0]);
  await world.lookAgain();
  await world.untilNamed(`invoices.status ${order.uuid}`);
  expect(decodeId('inv', order.invoiceId)).toBe(order.uuid);
});
