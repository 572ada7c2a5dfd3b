import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { insertOutgoing } from '../../src/core/payments/record-transfers.ts';
import { lockCursor } from '../../src/core/store/chain/cursor.ts';
import { findProject } from '../../src/core/store/ledger/projects.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { refundTransfer } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { operationDeps } from '../console/operation-deps.ts';
import { runSql } from '../contract/sql.ts';
import { createInvoice, eventually, inboxOf } from '../support/service.ts';
import { type Shop, World } from './world.ts';

const world = new World();
beforeAll(() => world.open(9));
afterAll(() => world.close());

const ACTOR = commandActor('anna');
const deps = () => ({ db: world.service.db, now: () => unixMs(world.service.clock.now()), random: randomBytes });

/** Sends unmatched money to a shop. Returns the UUID of its transfer, and a row for a transfer that would refund it. */
async function stray(shop: Shop) {
  const { service } = world;
  const { usdtContract: contract } = service.devnet;
  await service.payer.transfer({ contract, to: shop.addresses[0] ?? '', amountMicro: 3_000_000n });
  service.devnet.mineUntilSolid();
  const [row] = await eventually(
    () => runSql(service, 'select * from transfers where project_id = $1', [shop.id]),
    ({ length }) => length === 1,
  );
  const txId = randomBytes(32).toString('hex');
  const sent = {
    ...{ projectId: shop.id, addressId: row?.['address_id'], txId, logIndex: 0, blockId: 'ab'.repeat(32) },
    ...{ blockNumber: Number(row?.['block_number']) + 1, blockTime: deps().now(), toAddress: row?.['from_address'] },
    ...{ amountMicro: 3_000_000n, verified: 'proven' as const, nodes: [] },
  };
  return { transferId: String(row?.['id']), txId, sent: sent as never as Parameters<typeof insertOutgoing>[2][number] };
}

const INSERT = `insert into outgoing_transfers (network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time,
   to_address, amount_micro, verified, nodes, mac)
 select 'devnet', decode($2, 'hex'), 0, project_id, address_id, block_number + 1, sha256('x'), now(), from_address, amount_micro, 'proven', '{}',`;

const refund = (transferId: string, txId: string) =>
  refundTransfer.run(deps(), ACTOR, { transferId, txId, note: 'sent back', invoice: null });

/** The MAC column of a forged row. */
const MACS: readonly (readonly [string, string])[] = [
  ['no seal', 'null'],
  ['the seal of the transfer that came', 'mac'],
  ['the seal of another one that left', '(select mac from outgoing_transfers where mac is not null limit 1)'],
];

test('what left an address is sealed, and is a refund', async () => {
  const { transferId, txId, sent } = await stray(world.shop());
  await world.service.db.transaction(async (tx) => {
    await lockCursor(tx, 'devnet');
    expect(await insertOutgoing(tx, 'devnet', [sent])).toBe(1);
  });
  expect((await refund(transferId, txId)).refund).toMatchObject({ txId });
  await eventually(
    () => inboxOf(world.service),
    (told) => told.some(({ body }) => body?.type === 'transfer.refunded'),
  );
  await world.lookAgain();
  expect((await world.alarms()).filter((alarm) => alarm.includes('outgoing'))).toEqual([]);
});

test.each(MACS)(
  'a row that somebody puts there with %s refunds nothing, tells the shop nothing, and is named',
  async (_, mac) => {
    const { transferId, txId } = await stray(world.shop());
    await world.asService(`${INSERT} ${mac} from transfers where id = $1`, [transferId, txId]);
    await expect(refund(transferId, txId)).rejects.toThrow('the ledger has no transfer from an address');
    expect(await runSql(world.service, 'select from transfer_refunds where transfer_id = $1', [transferId])).toEqual(
      [],
    );
    expect(
      await runSql(world.service, `select from events where transfer_id = $1 and type = 'transfer.refunded'`, [
        transferId,
      ]),
    ).toEqual([]);
    await world.untilNamed(`row-changed outgoing_transfers ${txId}`);
  },
);

test('one of which somebody changes the recipient refunds nothing, and a refund by it is shown no more', async () => {
  const { transferId, txId, sent } = await stray(world.shop());
  await insertOutgoing(world.service.db, 'devnet', [{ ...sent, toAddress: 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH' }]);
  const set = 'update outgoing_transfers set to_address = $2 where tx_id = decode($1, $3)';
  await world.asOwner(set, [txId, sent.toAddress, 'hex']);
  await expect(refund(transferId, txId)).rejects.toThrow('the ledger has no transfer from an address');
  await world.untilNamed(`row-changed outgoing_transfers ${txId}`);
});

test('a correction has the seal of its row, and one that somebody puts there has none that counts', async () => {
  const { transferId, txId, sent } = await stray(world.shop());
  const { db } = world.service;
  await insertOutgoing(db, 'devnet', [sent]);
  await runSql(
    world.service,
    `insert into outgoing_annulments (network, tx_id, log_index, correction, denied_by, annulled_at, annulled_by, reason)
     values ('devnet', decode($1, 'hex'), 0, 0, sha256('y'), now(), 'anna', 'denied')`,
    [txId],
  );
  await expect(refund(transferId, txId)).rejects.toThrow('was annulled, because it is not on the chain');
  await world.asService(
    `insert into outgoing_corrections (network, tx_id, log_index, correction, project_id, address_id, block_number, block_id, block_time,
       to_address, amount_micro, verified, nodes)
     select network, tx_id, log_index, 1, project_id, address_id, block_number + 1, block_id, block_time, to_address, amount_micro, verified, nodes
     from only outgoing_transfers where tx_id = decode($1, 'hex')`,
    [txId],
  );
  await expect(refund(transferId, txId)).rejects.toThrow('was annulled, because it is not on the chain');
  await world.untilNamed(`row-changed outgoing_transfers ${txId}`);
});

test('limits that somebody writes stop no order and let no flood in, are named, and get no seal by another change', async () => {
  const shop = world.shop();
  const { service } = world;
  await world.asService('update projects set max_unpaid = 1, max_unpaid_per_minute = 1 where id = $1', [shop.id]);
  for (let orders = 0; orders < 3; orders += 1) {
    const { status } = await createInvoice(service, { apiKey: shop.apiKey });
    expect(status).toBe(201);
    service.clock.advance(2000);
  }
  await world.untilNamed(`row-changed projects.limits ${shop.id}`);
  const { db, now, random } = deps();
  const given = { projectId: encodeId('prj', shop.id), name: 'Renamed' };
  await updateProject.run(operationDeps({ db, now, random }), ACTOR, updateProject.read(given, now()));
  expect(await findProject(db, shop.id)).toMatchObject({ name: 'Renamed', maxUnpaid: 600, maxUnpaidPerMinute: 120 });
  expect(await runSql(service, 'select max_unpaid from projects where id = $1', [shop.id])).toEqual([
    { max_unpaid: 600 },
  ]);

  await world.asService('update projects set max_unpaid = null, max_unpaid_per_minute = null where id = $1', [shop.id]);
  expect(await findProject(db, shop.id)).toMatchObject({ maxUnpaid: 600, maxUnpaidPerMinute: 120 });
});

test.each([
  ['of a century', `now() + interval '100 years'`],
  ['of an hour', `now() + interval '59 minutes'`],
  ['of nine minutes', `now() + interval '9 minutes'`],
  ['without an end', `'infinity'`],
])('a pause %s that somebody writes keeps nothing from an endpoint', async (_, until) => {
  const { service } = world;
  await world.asService(`update webhook_endpoints set open_until = ${until}`);
  const [row] = await runSql(
    service,
    `select max(open_until) <= now() + interval '10 minutes' as is_bounded from webhook_endpoints`,
  );
  expect(row).toEqual({ is_bounded: true });
  await world.expectWell();
});
