import { afterEach, describe, expect, test } from 'vitest';
import { findCursor } from '../../src/core/store/chain/cursor.ts';
import { findChainStatus } from '../../src/core/store/chain/status.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { runCli } from '../cli/run-cli.ts';
import {
  alarmKinds,
  evidenceOf,
  metricOf,
  newOrder,
  type Order,
  payByContract,
  payDirectly,
  readInvoiceEvents,
  requestsTo,
  untilAlarm,
  untilExamined,
  untilPaid,
  untilRecorded,
} from '../support/chain-view.ts';
import {
  eventually,
  readInvoice,
  startTestService,
  type TestService,
  untilStatus,
  untilTold,
} from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

/** Blocks are a millisecond apart, so that the orders' deadlines stay where the test puts them. */
const QUICK = { stepMs: 1 };
const AHEAD_MS = 60_000;

let service: TestService;
afterEach(() => service?.stop());

type Missed = Awaited<ReturnType<typeof missMuch>>;

/** Stops the service, and pays orders meanwhile, over several hundred blocks. */
async function missMuch(nodeCount: number) {
  service = await startTestService({ nodeCount, addressCount: 3 });
  service.devnet.mine(1, { timestampMs: service.clock.now() + AHEAD_MS });
  await untilExamined(service);
  const orders: Order[] = [];
  while (orders.length < 14) orders.push(await newOrder(service));
  const [twice, inTime, late, unpaid, ...others] = orders as [Order, Order, Order, Order, ...Order[]];
  const deadline = Date.parse((await readInvoice(service, inTime.id)).body.expiresAt);
  const latest = Date.parse((await readInvoice(service, unpaid.id)).body.expiresAt);
  const from = service.devnet.head().number;
  await service.stopService();
  const direct = others.slice(0, 5);
  const internal = others.slice(5);
  const txIds = { direct: [] as string[], internal: [] as string[] };
  for (const [index, order] of direct.entries()) {
    txIds.direct.push(await payDirectly(service, order));
    if (index < 2) await payDirectly(service, twice);
    service.devnet.mine(40, QUICK);
    const pair = internal.slice(2 * index, 2 * index + 2);
    if (pair.length > 0) txIds.internal.push(await payByContract(service, ...pair));
    service.devnet.mine(7, QUICK);
  }
  await payDirectly(service, inTime);
  service.devnet.mine(1, { timestampMs: deadline - 1 });
  service.devnet.mine(60, { stepMs: 3000 });
  expect(service.devnet.head().timestampMs).toBeGreaterThan(latest);
  await payDirectly(service, late);
  service.devnet.mineUntilSolid(QUICK);
  service.devnet.mine(40, QUICK);
  return { from, txIds, twice, inTime, late, unpaid, paid: [...direct, ...internal, twice, inTime] };
}

const reported = unlistedStatement(
  '',
  { type: 'text', number: 'int8?' },
  `select e.type, t.block_number as number from events e left join transfers t on t.id = e.transfer_id
    order by e.created_at, e.id`,
);

async function expectEverythingTold({ txIds, twice, late, unpaid, paid }: Missed, verified: string) {
  await untilPaid(service, ...paid, late);
  await untilStatus(service, unpaid.id, 'EXPIRED');
  await untilRecorded(service);
  for (const order of paid) {
    expect((await readInvoice(service, order.id)).body.payment.transaction).toMatchObject({ late: false });
    expect(await readInvoiceEvents(service, order)).not.toContain('invoice.expired');
  }
  expect((await readInvoice(service, late.id)).body.payment.transaction).toMatchObject({ late: true });
  await untilTold(service);
  const events = await service.db.run(reported, []);
  const count = (type: string) => events.filter((event) => event.type === type).length;
  expect(count('invoice.paid')).toBe(paid.length + 1);
  expect(count('transfer.duplicate')).toBe(1);
  expect(count('transfer.unmatched')).toBe(0);
  // Unmatched transfers and payments are compared separately.
  for (const kind of ['invoice.', 'transfer.']) {
    const heights = events.flatMap(({ type, number }) => (number !== null && type.startsWith(kind) ? [number] : []));
    expect(heights).toEqual([...heights].sort((left, right) => Number(left - right)));
  }
  expect(await readInvoiceEvents(service, twice)).toEqual(expect.arrayContaining(['invoice.paid']));
  for (const txId of txIds.direct) {
    expect(await evidenceOf(service, txId)).toMatchObject([{ kind: 'matched', verified: 'proven' }]);
  }
  for (const txId of txIds.internal) {
    for (const evidence of await evidenceOf(service, txId)) expect(evidence).toMatchObject({ verified });
  }
  expect(await alarmKinds(service)).toEqual([]);
}

describe.each([
  [1, 'single-node'],
  [2, 'agreed:2'],
])('after a downtime of several hundred blocks, with nodes of %i operators', (nodeCount, verified) => {
  test('every payment is found and told in the order of the chain, nothing paid in time expires or is late, and blocks are read in ranges', async () => {
    const missed = await missMuch(nodeCount);
    const blocks = service.devnet.head().number - missed.from;
    expect(blocks).toBeGreaterThan(300);
    await service.restart();
    await untilRecorded(service);
    // One request out of six for each block's header and transactions, one for the infos of each block with a call, and some at the start
    // and head. Later, it looks for new blocks as long as the test takes.
    const requests = await Promise.all(service.nodes.map(({ url }) => requestsTo(service, url)));
    expect(Math.max(...requests)).toBeLessThan(0.3 * blocks);
    await expectEverythingTold(missed, verified);
  });

  test('it is stopped in the middle and goes on from there', async () => {
    const missed = await missMuch(nodeCount);
    for (const share of [0.2, 0.6]) {
      const goal = missed.from + Math.floor(share * (service.devnet.head().number - missed.from));
      await service.restart();
      const cursor = await eventually(
        () => findCursor(service.db, 'devnet'),
        (seen) => (seen?.solid.number ?? 0) >= goal,
      );
      expect(cursor?.solid.number).toBeLessThan(service.devnet.solid().number);
      await service.stopService();
    }
    await service.restart();
    await expectEverythingTold(missed, verified);
  });
});

longTest(
  'progress is told while catching up: how fast and how much is left, in the status and the metrics',
  async () => {
    await missMuch(1);
    await service.restart();
    await eventually(
      () => metricOf(service, 'quittance_chain_catch_up_blocks_per_second'),
      (rate) => rate > 0,
    );
    await eventually(
      () => findChainStatus(service.db, 'devnet'),
      (found) => typeof found?.status.catchUp?.secondsLeft === 'number',
    );
    await untilExamined(service);
    expect(await metricOf(service, 'quittance_chain_catch_up_seconds_left')).toBe(0);
    await eventually(
      () => findChainStatus(service.db, 'devnet'),
      (found) => found?.status.catchUp === null && found.status.processedNumber === service.devnet.solid().number,
    );
  },
);

test('a watcher that reads more slowly than the chain grows shows that it falls further behind', async () => {
  service = await startTestService();
  await untilExamined(service);
  await service.stopService();
  service.devnet.mine(400, QUICK);
  const target = service.devnet.solid().number;
  service.devnet.setFault({ kind: 'slow-large-answer', bytesPerSecond: 32 * 1024 });
  await service.restart();
  await eventually(
    () => metricOf(service, 'quittance_chain_catch_up_blocks_per_second'),
    (rate) => rate > 0,
  );
  service.devnet.mine(400, QUICK);
  const seen = await eventually(
    () => findChainStatus(service.db, 'devnet'),
    (found) => (found?.status.nodeSolidNumber ?? 0) > target,
  );
  expect(seen?.status.processedNumber).toBeLessThan(target);
  service.devnet.setFault();
  await untilRecorded(service);
});

test('behind the head, blocks that were read together with one that cannot be verified do not wait for it', async () => {
  service = await startTestService({ addressCount: 3 });
  await untilExamined(service);
  const [early, late] = [await newOrder(service), await newOrder(service)];
  await service.stopService();
  await payDirectly(service, early);
  service.devnet.mine(200, QUICK);
  await payDirectly(service, late);
  service.devnet.mine(1, QUICK);
  const bad = service.devnet.head().number;
  service.devnet.mineUntilSolid(QUICK);
  service.devnet.mine(100, QUICK);
  const behind = service.devnet.head().number - service.devnet.solid().number;
  service.devnet.setFault({ kind: 'flipped-info-result', fromBlock: bad, toBlock: bad });
  await service.restart();
  await untilPaid(service, early);
  // A block is irreversible once enough others are on top of it.
  await eventually(
    () => findCursor(service.db, 'devnet'),
    (seen) => seen?.solid.number === bad - 1 - behind,
  );
  expect(await untilAlarm(service, 'unverifiable-block')).toContain(`block ${bad}: the transaction infos contradict`);
  service.devnet.setFault();
  await untilPaid(service, late);
});

test('behind the head, an operator can accept several blocks in a row that no node can prove', async () => {
  service = await startTestService();
  await untilExamined(service);
  await service.stopService();
  const { devnet } = service;
  devnet.mine(100, QUICK);
  const hidden = [1, 2].flatMap(() => {
    devnet.poison('unknown-result-field');
    return devnet.mine(1, QUICK);
  });
  devnet.mine(100, QUICK);
  await service.restart();
  const env = {
    DATABASE_URL: service.connectionString,
    QUITTANCE_DEVNET_NODES: devnet.url,
    QUITTANCE_DEVNET_USDT: devnet.usdtContract,
  };
  for (const { number, id } of hidden) {
    const detail = await eventually(
      () => untilAlarm(service, 'unverifiable-block'),
      (text) => text.includes(`block ${number} (${id})`),
    );
    expect(detail).toContain(`quittance chain pass --network devnet --block ${number} --reason "…"`);
    await eventually(
      () => runCli(['chain', 'pass', '--block', String(number), '--reason', 'checked', '--id', id, '--yes'], { env }),
      ({ code }) => code === 0,
    );
  }
  await untilRecorded(service);
  expect(await alarmKinds(service)).toEqual(['unproven-block']);
});
