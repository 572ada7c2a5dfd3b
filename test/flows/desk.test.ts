import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import type { ResolutionKind } from '../../src/core/domain/resolution.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { resolveTransfers } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { findTransfersOfTransaction } from '../../src/faces/operator/subjects/transfer-export.ts';
import { openEventStream } from '../support/event-stream.ts';
import {
  call,
  createInvoice,
  eventually,
  inboxOf,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';

const OPERATOR = commandActor('test');

const DEPS = () => ({
  db: service.db,
  now: () => unixMs(service.clock.now()),
  random: (size: number) => randomBytes(size),
});

let service: TestService;
let client: pg.Client;
beforeAll(async () => {
  service = await startTestService({ addressCount: 3 });
  client = new pg.Client(service.ownerString);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await service.stop();
});

async function newInvoice(): Promise<{ id: string; address: string; amountMicro: bigint }> {
  const id: string = (await createInvoice(service)).body.invoiceId;
  return { id, ...(await payableOf(service, id)) };
}

function send(to: string, amountMicro: bigint): Promise<string> {
  return service.payer.transfer({ contract: service.devnet.usdtContract, to, amountMicro });
}

/** Makes everything sent irreversible, and waits until the watcher has recorded it. */
async function settle(): Promise<void> {
  service.devnet.mineUntilSolid();
  const { number } = service.devnet.solid();
  await eventually(
    () => findCursor(service.db, 'devnet'),
    (cursor) => cursor !== null && cursor.solid.number >= number,
  );
}

/** Returns the recorded transfers of a transaction, in the order of its logs. */
async function recorded(txId: string) {
  return (await findTransfersOfTransaction(service.db, txId, null, 500)).map(
    ({ logIndex, address: to, amountMicro, kind, invoice }) => {
      return { logIndex, to, amountMicro, kind, externalId: invoice?.externalId ?? null };
    },
  );
}

/** Waits until all of the transaction's transfers have events. */
async function eventsAbout(txId: string): Promise<{ type: string; transferId: string }[]> {
  await untilTold(service);
  const { rows } = await client.query(
    `select e.type, e.body::jsonb -> 'data' ->> 'transferId' as "transferId"
     from events e join transfers t on t.id = e.transfer_id where t.tx_id = decode($1, 'hex') order by e.id`,
    [txId],
  );
  return rows;
}

function retire(address: string): Promise<unknown> {
  return client.query('update addresses set retired_at = now() where address = $1', [address]);
}

test('a retired address is watched on: the exact amount still pays its invoice, any other amount is unmatched', async () => {
  const invoice = await newInvoice();
  await retire(invoice.address);
  const [off, exact] = [
    await send(invoice.address, invoice.amountMicro - 1n),
    await send(invoice.address, invoice.amountMicro),
  ];
  await settle();
  await untilStatus(service, invoice.id, 'PAID');
  expect(await recorded(off)).toMatchObject([{ kind: 'unmatched', to: invoice.address, externalId: null }]);
  expect(await recorded(exact)).toMatchObject([{ kind: 'matched', to: invoice.address }]);
  expect(await eventsAbout(off)).toMatchObject([{ type: 'transfer.unmatched' }]);
});

test('the exact amount of a paid invoice is a duplicate, also at an address that was retired since, and told as such', async () => {
  const invoice = await newInvoice();
  await send(invoice.address, invoice.amountMicro);
  await settle();
  const { externalId } = await untilStatus(service, invoice.id, 'PAID');
  await retire(invoice.address);
  const again = await send(invoice.address, invoice.amountMicro);
  await settle();
  expect(await recorded(again)).toMatchObject([{ kind: 'duplicate', externalId }]);
  const [webhook] = await eventually(
    async () => (await inboxOf(service)).filter(({ body }) => body.data.txId === again),
    (all) => all.length > 0,
  );
  expect(webhook).toMatchObject({
    type: 'transfer.duplicate',
    verified: true,
    body: { data: { invoiceId: invoice.id } },
  });
});

test('several transfers to us in one transaction are each recorded once, each by its own log', async () => {
  const [first, second] = [await newInvoice(), await newInvoice()];
  const transfers = [
    { to: first.address, amountMicro: first.amountMicro },
    { to: first.address, amountMicro: 3_210_000n },
    { to: service.payer.address, amountMicro: 1n },
    { to: second.address, amountMicro: second.amountMicro },
    { to: first.address, amountMicro: first.amountMicro },
    { to: first.address, amountMicro: 3_210_000n },
  ];
  const { usdtContract: token, multisendContract } = service.devnet;
  const txId = await service.payer.multisend({ multisendContract, token, transfers });
  await settle();
  expect(
    (await recorded(txId)).map(({ logIndex, kind, to, amountMicro }) => [logIndex, kind, to, amountMicro]),
  ).toEqual([
    [0, 'matched', first.address, first.amountMicro],
    [1, 'unmatched', first.address, 3_210_000n],
    [3, 'matched', second.address, second.amountMicro],
    [4, 'duplicate', first.address, first.amountMicro],
    [5, 'unmatched', first.address, 3_210_000n],
  ]);
  const reported = await eventsAbout(txId);
  expect(reported.map(({ type }) => type).sort()).toEqual([
    'invoice.paid',
    'invoice.paid',
    'transfer.duplicate',
    'transfer.unmatched',
    'transfer.unmatched',
  ]);
});

test('a transfer of nothing and a transfer of another token are not recorded', async () => {
  const invoice = await newInvoice();
  const nothing = await send(invoice.address, 0n);
  const fake = await service.payer.transfer({
    contract: service.devnet.fakeUsdtContract,
    to: invoice.address,
    amountMicro: invoice.amountMicro,
  });
  await settle();
  for (const txId of [nothing, fake]) expect(await recorded(txId)).toEqual([]);
  expect((await readInvoice(service, invoice.id)).body.status).toBe('PENDING');
});

test('what was recorded is not recorded again by a restarted service', async () => {
  const { address } = await newInvoice();
  const txId = await send(address, 4_560_000n);
  await settle();
  await service.restart();
  const later = await send(address, 4_560_000n);
  await settle();
  expect([(await recorded(txId)).length, (await recorded(later)).length]).toEqual([1, 1]);
  const { rows } = await client.query('select count(*)::int as count from transfers where amount_micro = 4560000');
  expect(rows).toEqual([{ count: 2 }]);
});

/** Creates an order that was paid 1 USDT too little, and its page. */
async function shortOrder() {
  const { invoiceId: id, checkoutUrl: url } = (await createInvoice(service)).body;
  const invoice = { id, ...(await payableOf(service, id)) };
  const txId = await send(invoice.address, invoice.amountMicro - 1_000_000n);
  await settle();
  await untilTold(service);
  const [short] = await findTransfersOfTransaction(service.db, txId, null, 500);
  const decide = (resolution: ResolutionKind, named: string | null) =>
    resolveTransfers.run(DEPS(), OPERATOR, { transferIds: [short?.id ?? ''], resolution, note: '', invoice: named });
  return { ...invoice, url: String(url), transferId: short?.id ?? '', txId, decide };
}

test('an invoice that was credited outside stays unpaid, its page asks for nothing at once, and its exact transfer still pays it', async () => {
  const order = await shortOrder();
  const stream = await openEventStream(`${order.url}/live`);
  onTestFinished(() => stream.close());
  const last = () => stream.messages().at(-1);
  const waiting = await eventually(last, (message) => message?.state === 'waiting');
  const resolved = await order.decide('fulfilled-manually', order.id);
  expect(resolved).toMatchObject({ resolvedBy: 'test', invoice: { status: 'PENDING' } });
  expect((await readInvoice(service, order.id)).body.status).toBe('PENDING');
  const settled = await eventually(last, (message) => message?.state === 'settled');
  expect(settled?.parts).toMatchObject({ pay: '', help: '', rules: '', when: '' });
  expect(settled?.parts.status).toContain('Do not send anything.');
  const parts = await call(`${order.url}/parts?v=${waiting?.version}`);
  expect(parts.body).toMatchObject({ state: 'settled', version: settled?.version });
  const status = await call(`${order.url}/status`);
  expect(status.body).toMatchObject({ state: 'settled', amount: null, address: null });
  const page = (await (await fetch(order.url)).text()).replace(/<style.*?<\/style>/s, '');
  for (const text of [page, JSON.stringify([settled, parts, status])]) {
    expect(text).not.toMatch(new RegExp(`${order.address}|class=.{0,2}qr|data-copy=|id=.{0,2}amount`));
  }
  const fee = await fetch(`${order.url}/ask`, { method: 'POST', body: new URLSearchParams({ fee: '1' }) });
  expect(await fee.text()).not.toContain(order.address);
  await send(order.address, order.amountMicro);
  await settle();
  await untilStatus(service, order.id, 'PAID');
  await eventually(last, (message) => message?.state === 'paid');
});

test('the page follows the newest decision, whatever was decided before, and each decision is an event', async () => {
  const [order, other] = [await shortOrder(), await shortOrder()];
  const streams = await Promise.all([order, other].map(({ url }) => openEventStream(`${url}/live`)));
  onTestFinished(() => {
    for (const stream of streams) stream.close();
  });
  const decisions: { decide: [ResolutionKind, string | null]; settled: [boolean, boolean] }[] = [
    { decide: ['fulfilled-manually', null], settled: [false, false] },
    { decide: ['fulfilled-manually', order.id], settled: [true, false] },
    { decide: ['refunded', order.id], settled: [false, false] },
    { decide: ['kept', order.id], settled: [false, false] },
    { decide: ['own-deposit', order.id], settled: [false, false] },
    { decide: ['fulfilled-manually', other.id], settled: [false, true] },
    { decide: ['fulfilled-manually', order.id], settled: [true, false] },
    { decide: ['kept', null], settled: [false, false] },
  ];
  for (const { decide, settled } of decisions) {
    await order.decide(...decide);
    const wanted = settled.map((isSettled) => (isSettled ? 'settled' : 'waiting'));
    await eventually(
      () => streams.map((stream) => stream.messages().at(-1)?.state),
      (states) => isDeepStrictEqual(states, wanted),
    );
    const statuses = await Promise.all([order, other].map(({ url }) => call(`${url}/status`)));
    expect(statuses.map(({ body }) => body.state)).toEqual(wanted);
  }
  const told = await eventsAbout(order.txId);
  expect(told.filter(({ type }) => type === 'transfer.resolved')).toHaveLength(decisions.length);
  // One of two decisions about two transfers is enough.
  await order.decide('fulfilled-manually', order.id);
  await other.decide('fulfilled-manually', order.id);
  await order.decide('kept', null);
  expect((await call(`${order.url}/status`)).body.state).toBe('settled');
});

test('a page that the shop settled says so however else it stands, and a look-up there asks for nothing', async () => {
  const order = await shortOrder();
  await order.decide('fulfilled-manually', order.id);
  await client.query('update invoices set withdrawn_at = now() where id = $1', [decodeId('inv', order.id)]);
  expect((await call(`${order.url}/status`)).body.state).toBe('settled');
  const asked = await fetch(`${order.url}/ask`, {
    ...{ method: 'POST', body: new URLSearchParams({ transaction: `0x${'ab'.repeat(32)}` }) },
  });
  const text = await asked.text();
  expect(text).toContain('not on TRON');
  expect(text).not.toContain('still awaiting payment');
});

test('if the process dies within a decision there is neither decision nor event', async () => {
  const order = await shortOrder();
  const counts = async () =>
    (
      await client.query(
        'select (select count(*) from events) as events, (select count(*) from transfer_resolutions) as decisions',
      )
    ).rows;
  const before = await counts();
  const { db } = DEPS();
  const dying = {
    ...DEPS(),
    db: {
      ...db,
      transaction: (work: never) =>
        db.transaction(async (tx) =>
          Promise.reject((await (work as (sql: typeof tx) => Promise<unknown>)(tx)) && new Error('killed')),
        ),
    } as typeof db,
  };
  const request = {
    transferIds: [order.transferId],
    resolution: 'fulfilled-manually',
    note: '',
    invoice: order.id,
  } as const;
  await expect(resolveTransfers.run(dying, OPERATOR, request)).rejects.toThrow('killed');
  expect(await counts()).toEqual(before);
  expect((await call(`${order.url}/status`)).body.state).toBe('waiting');
});

test('more than 500 transfers are not resolved at once, whoever asks', async () => {
  const request = {
    transferIds: Array.from({ length: 501 }, () => randomUUID()),
    resolution: 'kept',
    note: '',
    invoice: null,
  } as const;
  await expect(async () => resolveTransfers.run(DEPS(), OPERATOR, request)).rejects.toThrow(
    '501 transfers were given, but at most 500',
  );
});

test.each([
  ['a resolution is never changed', `update transfer_resolutions set resolution = 'kept'`, /never changed/],
  ['a resolution is never deleted', 'delete from transfer_resolutions', /never deleted/],
  [
    'a transfer that paid its invoice has no resolution',
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at)
     select project_id, id, 'refunded', '', 'x', now() from transfers where kind = 'matched' limit 1`,
    /there is nothing to resolve/,
  ],
  [
    'no decision is made without its event',
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at, is_untold)
     select project_id, id, 'refunded', '', 'x', now(), false from transfers where kind = 'unmatched' limit 1`,
    /transfer_resolutions_are_told/,
  ],
  [
    'no event tells of two decisions',
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at, is_untold, event_id)
     select project_id, transfer_id, 'refunded', '', 'x', now(), false, event_id from transfer_resolutions limit 1`,
    /transfer_resolutions_event_id_key/,
  ],
  [
    'no decision names an event that is not there',
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at, is_untold, event_id)
     select project_id, id, 'refunded', '', 'x', now(), false, gen_random_uuid() from transfers where kind = 'unmatched' limit 1`,
    /transfer_resolutions_event_id_fkey/,
  ],
  [
    'a transfer stands in the ledger once',
    `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, verified, nodes)
     select gen_random_uuid(), project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
       from_address, amount_micro, kind, verified, nodes
     from transfers where kind = 'unmatched' limit 1`,
    /duplicate key value/,
  ],
])('%s, whatever the code says', async (_title, sql, message) => {
  await expect(client.query(sql)).rejects.toThrow(message);
});
