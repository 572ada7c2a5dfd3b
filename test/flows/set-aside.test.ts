import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { writeText } from '../../src/faces/operator/command-words.ts';
import { explainSubject } from '../../src/faces/operator/explain/explain.ts';
import { runSql } from '../contract/sql.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  inboxOf,
  type Json,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ config: { rowMacs: 'require' } });
});
afterAll(() => service.stop());

type Order = { shop: TestProject; invoiceId: string; uuid: string; to: string; amountMicro: bigint };

const newShop = async () => {
  const shop = await createTestProject(service.db);
  await addTestEndpoint(service.db, { projectId: shop.id, url: service.inboxUrl, secret: service.webhookSecret });
  return shop;
};

async function newOrder(shop: TestProject, body: Json = {}): Promise<Order> {
  const made = await createInvoice(service, { apiKey: shop.apiKey, body });
  expect(made).toMatchObject({ status: 201 });
  const { invoiceId } = made.body;
  const { payment } = await read(shop, invoiceId);
  const amountMicro = BigInt(payment.payableAmount.replace('.', ''));
  return { shop, invoiceId, uuid: decodeId('inv', invoiceId) ?? '', to: payment.address, amountMicro };
}

const read = async (shop: TestProject, invoiceId: string): Promise<Json> => {
  const headers = { 'x-api-key': shop.apiKey };
  return (await call(`${service.url}/v1/invoices/${invoiceId}?expand=payment`, { headers })).body;
};

async function pay(...orders: readonly Order[]): Promise<void> {
  const { usdtContract: contract } = service.devnet;
  for (const { to, amountMicro } of orders) await service.payer.transfer({ contract, to, amountMicro });
}

const becomes = ({ shop, invoiceId }: Order, status: string) =>
  eventually(
    () => read(shop, invoiceId),
    (body) => body.status === status,
  );

const paidEvents = async ({ invoiceId }: Order) =>
  (await inboxOf(service, invoiceId)).filter(({ body }) => body?.type === 'invoice.paid');
const delivered = (order: Order) =>
  eventually(
    () => paidEvents(order),
    ({ length }) => length > 0,
  );

const explain = async (text: string) => {
  const deps = { db: service.db, now: () => unixMs(service.clock.now()) };
  const { verdict, next } = await explainSubject(deps, commandActor('ann'), { text, projectId: undefined });
  return { verdict: verdict.map(writeText).join(' '), next: next.map(({ hint }) => hint) };
};

const alarms = async () => {
  const rows = await runSql(
    service,
    `select subject, detail from alarms where kind = 'set-aside' and resolved_at is null order by subject`,
  );
  return rows.map(({ subject, detail }) => `${subject} ${detail}`);
};
const noAlarms = () =>
  eventually(
    () => alarms(),
    ({ length }) => length === 0,
  );
const named = (text: string) =>
  eventually(
    () => alarms(),
    (open) => open.some((alarm) => alarm.includes(text)),
  );
const transfersTo = async ({ to }: Order) =>
  runSql(
    service,
    `select t.kind, t.invoice_id from transfers t join addresses a on a.id = t.address_id where a.address = $1 order by t.id`,
    [to],
  );

/** Bypasses every guard of the database without disabling any. */
async function pastGuards(text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: service.ownerString });
  await client.connect();
  await client.query('set session_replication_role = replica');
  await client.query(text, values).finally(() => client.end());
}

/** Waits until everything that was set aside is recorded. Skips the pauses, which grow to minutes. */
const untilNoneIsSetAside = () =>
  eventually(
    async () => {
      await pastGuards('update set_aside set due_at = now()');
      return runSql(service, 'select from set_aside');
    },
    ({ length }) => length === 0,
  );

/** Changes that an attacker makes to the rows of one order, and their repair. */
const DAMAGES: readonly {
  what: string;
  damage: (order: Order) => readonly [text: string, values: unknown[]];
  repair: (order: Order) => readonly [text: string, values: unknown[]];
}[] = [
  {
    what: 'a status that has no seal',
    damage: ({ uuid }) => [`update invoices set status = 'EXPIRED', event_count = 1 where id = $1`, [uuid]],
    repair: ({ uuid }) => [`update invoices set status = 'PENDING', event_count = 0 where id = $1`, [uuid]],
  },
  {
    what: 'a reservation that is not as it was sealed',
    damage: ({ uuid }) => [`update invoices set external_id = external_id || 'x' where id = $1`, [uuid]],
    repair: ({ uuid }) => [`update invoices set external_id = rtrim(external_id, 'x') where id = $1`, [uuid]],
  },
  {
    what: 'an address whose text is another one',
    damage: ({ to }) => [
      `update addresses set mac = decode(repeat('00', 24), 'hex'), barred_at = null where address = $1`,
      [to],
    ],
    repair: ({ to }) => [
      `update addresses set mac = (select mac from kept_macs where address = $1) where address = $1`,
      [to],
    ],
  },
  {
    what: 'a stream of events that is at its end',
    damage: ({ shop }) => [
      'update event_streams set last_position = 1000000000000000 where project_id = $1',
      [shop.id],
    ],
    repair: ({ shop }) => [
      'update event_streams set last_position = (select max(position) from events where project_id = $1) where project_id = $1',
      [shop.id],
    ],
  },
  {
    what: 'a count of events that is at its end',
    damage: ({ uuid }) => ['update invoices set event_count = 1000000 where id = $1', [uuid]],
    repair: ({ uuid }) => ['update invoices set event_count = 0 where id = $1', [uuid]],
  },
  {
    what: 'an event that has the number of the next one',
    damage: ({ uuid, shop }) => [
      `insert into events (id, project_id, network, type, invoice_id, sequence, position, body)
       values (gen_random_uuid(), $2, 'devnet', 'invoice.confirming', $1, 1, 900000, '{}')`,
      [uuid, shop.id],
    ],
    repair: ({ uuid }) => ['delete from events where invoice_id = $1 and position = 900000', [uuid]],
  },
];

test.each(someCases(DAMAGES, 3))(
  '$what keeps a payment of its own from being recorded, and no other; after the repair it is paid',
  async ({ damage, repair }) => {
    const [shop, other] = [await newShop(), await newShop()];
    const first = await newOrder(shop);
    await pay(first);
    service.devnet.mineUntilSolid();
    await becomes(first, 'PAID');
    await pastGuards('create table if not exists kept_macs as select address, mac from addresses where false');
    await pastGuards('insert into kept_macs select address, mac from addresses where project_id = $1', [shop.id]);
    const [struck, sound] = [await newOrder(shop), await newOrder(other)];
    await pastGuards(...damage(struck));

    await pay(struck, sound);
    // The same amount again is a duplicate of the first transfer, even while that one is set aside.
    await pay(struck);
    service.devnet.mineUntilSolid();
    await becomes(sound, 'PAID');
    await delivered(sound);
    await named(struck.to);
    expect(await transfersTo(struck)).toHaveLength(1);
    expect(await paidEvents(struck)).toEqual([]);
    const [{ id: entry } = { id: '' }] = await runSql(
      service,
      `select id from set_aside where id like '% transfer %' order by id`,
    );
    const [, , txId = ''] = String(entry).split(' ');
    for (const text of [txId, struck.invoiceId]) {
      const { verdict, next } = await explain(text);
      expect(verdict, text).toContain('Quittance has set the payment aside, because a row fails its check');
      expect(verdict).not.toContain('does not contain this transaction');
      expect(next).toContainEqual({ command: 'chain status', input: { network: 'devnet' } });
    }
    await service.restart();
    const later = await newOrder(other);
    await pay(later);
    service.devnet.mineUntilSolid();
    await becomes(later, 'PAID');

    await pastGuards(...repair(struck));
    await untilNoneIsSetAside();
    await becomes(struck, 'PAID');
    await delivered(struck);
    await noAlarms();
    const kinds = await transfersTo(struck);
    expect(kinds.filter(({ invoice_id }) => invoice_id === struck.uuid).map(({ kind }) => kind)).toEqual([
      'matched',
      'duplicate',
    ]);
    expect(await runSql(service, 'select from set_aside')).toEqual([]);
  },
);

test('an equal transfer that is due first does not overtake the one that it waits for', async () => {
  const order = await newOrder(await newShop());
  const event = `insert into events (id, project_id, network, type, invoice_id, sequence, position, body)
    values (gen_random_uuid(), $2, 'devnet', 'invoice.confirming', $1, 1, 900000, '{}')`;
  await pastGuards(event, [order.uuid, order.shop.id]);
  const waiting = () =>
    runSql(
      service,
      `select id, tries, (content::json->>'number')::int8 as number from set_aside where amount_micro = $1 order by number`,
      [order.amountMicro],
    );
  await pay(order);
  service.devnet.mineUntilSolid();
  await eventually(waiting, ({ length }) => length === 1);
  await pay(order);
  service.devnet.mineUntilSolid();
  const [first, second] = await eventually(waiting, ({ length }) => length === 2);
  // A retry that is under way would postpone it by seconds only; after ten tries it postpones it by minutes.
  await pastGuards(`update set_aside set due_at = now() + interval '4 minutes', tries = 10 where id = $1`, [
    first?.['id'],
  ]);
  await pastGuards('delete from events where invoice_id = $1 and position = 900000', [order.uuid]);
  await pastGuards('update set_aside set due_at = now(), tries = 0 where id = $1', [second?.['id']]);
  await eventually(waiting, (rows) => rows.length < 2 || Number(rows[1]?.['tries']) > 1);
  expect(await transfersTo(order)).toEqual([]);

  await pastGuards('update set_aside set due_at = now()');
  await eventually(waiting, ({ length }) => length < 2);
  await pastGuards('update set_aside set due_at = now()');
  await eventually(waiting, ({ length }) => length === 0);
  const recorded = await runSql(
    service,
    'select kind, block_number from transfers where invoice_id = $1 order by block_number',
    [order.uuid],
  );
  expect(recorded).toEqual([
    { kind: 'matched', block_number: first?.['number'] },
    { kind: 'duplicate', block_number: second?.['number'] },
  ]);
  await delivered(order);
  await noAlarms();
});

test('orders that cannot expire hold up no other: those expire, an alarm names each, and after the repair they expire too', async () => {
  const [shop, other] = [await newShop(), await newShop()];
  const brief = { expiresInSeconds: 300 };
  const struck = [await newOrder(shop, brief), await newOrder(shop, brief)] as const;
  const sound = await newOrder(other, brief);
  await pastGuards(`update invoices set external_id = external_id || 'x' where id = $1`, [struck[0].uuid]);
  await pastGuards('update invoices set event_count = 1000000 where id = $1', [struck[1].uuid]);
  service.clock.advance(400_000);
  service.devnet.mine(1, { timestampMs: Math.ceil(service.clock.now() / 3000) * 3000 });
  await becomes(sound, 'EXPIRED');
  for (const { invoiceId } of struck) await named(invoiceId);
  await pastGuards(`update invoices set external_id = rtrim(external_id, 'x') where id = $1`, [struck[0].uuid]);
  await pastGuards('update invoices set event_count = 0 where id = $1', [struck[1].uuid]);
  for (const order of struck) {
    await eventually(
      () => {
        service.devnet.mine();
        return read(order.shop, order.invoiceId);
      },
      ({ status }) => status === 'EXPIRED',
    );
  }
  await noAlarms();
});

test('a note that somebody wrote past Quittance is an alarm, and holds up no payment of that amount', async () => {
  const order = await newOrder(await newShop());
  const client = new pg.Client({ connectionString: service.connectionString });
  await client.connect();
  await client
    .query(
      `insert into set_aside (id, network, content, account, amount_micro, reason)
       select 'devnet transfer planted 0', 'devnet', '{}', account, $2, 'x' from addresses where address = $1`,
      [order.to, order.amountMicro],
    )
    .finally(() => client.end());
  await named('was changed directly in the database');
  await pay(order);
  service.devnet.mineUntilSolid();
  await becomes(order, 'PAID');
  await pastGuards(`delete from set_aside where id = 'devnet transfer planted 0'`);
  await noAlarms();
});
