import { afterEach, describe, expect, test } from 'vitest';
import { findChainStatus } from '../../src/core/store/chain/status.ts';
import { runSql } from '../contract/sql.ts';
import {
  alarmKinds,
  evidenceOf,
  metricOf,
  newOrder,
  payByContract,
  payDirectly,
  statusOf,
  untilAlarm,
  untilExamined,
  untilPaid,
  untilRecorded,
} from '../support/chain-view.ts';
import { eventually, readInvoice, startTestService, type TestService, untilStatus } from '../support/service.ts';

type PaidOrder = Awaited<ReturnType<typeof newOrder>>;

let service: TestService;
afterEach(() => service?.stop());

const BASIS_POINTS = 10n;

/** Returns the amount to send so that this much arrives: Tether takes `value · basisPoints / 10000`, rounded down. */
function grossOf(netMicro: bigint): bigint {
  let gross = (netMicro * 10_000n) / (10_000n - BASIS_POINTS);
  while (gross - (gross * BASIS_POINTS) / 10_000n < netMicro) gross += 1n;
  return gross;
}

/** Pays two orders while the fee is on: for one, more is sent so that the full amount arrives; for the other, exactly its amount. */
async function payWithFee() {
  const [gross, net] = [await newOrder(service), await newOrder(service)];
  service.devnet.usdt.setParams({ basisPoints: Number(BASIS_POINTS), maxFeeUsdt: 40 });
  service.devnet.mine();
  const grossTx = await payDirectly(service, { ...gross, amountMicro: grossOf(gross.amountMicro) });
  const netTx = await payDirectly(service, net);
  service.devnet.mineUntilSolid();
  return { gross: { ...gross, txId: grossTx }, net: { ...net, txId: netTx } };
}

test('while the fee is on, an order is paid by what arrives and not by what was sent, which is agreed:2 and not proven', async () => {
  service = await startTestService({ nodeCount: 2 });
  const { gross, net } = await payWithFee();
  await untilPaid(service, gross);
  await untilRecorded(service);
  expect(await untilAlarm(service, 'contract-event')).toContain('Params');
  const verified = 'agreed:2';
  expect(await evidenceOf(service, gross.txId)).toMatchObject([{ kind: 'matched', verified }]);
  expect(await evidenceOf(service, net.txId)).toMatchObject([{ kind: 'unmatched', verified }]);
  expect(await statusOf(service, net)).toBe('PENDING');
});

test('with nodes of one operator, which could make up a fee, an order is paid by what was sent, and is proven', async () => {
  service = await startTestService({ nodeCount: 1 });
  const { gross, net } = await payWithFee();
  await untilPaid(service, net);
  await untilRecorded(service);
  expect(await untilAlarm(service, 'contract-event')).toContain('Params');
  expect(await evidenceOf(service, net.txId)).toMatchObject([{ kind: 'matched', verified: 'proven' }]);
  expect(await evidenceOf(service, gross.txId)).toMatchObject([{ kind: 'unmatched', verified: 'proven' }]);
  expect(await statusOf(service, gross)).toBe('PENDING');
});

describe.each([
  [1, 'single-node'],
  [2, 'agreed:2'],
])('%i operators', (nodeCount, verified) => {
  test(`a direct payment is proven by the header and tells who showed it, one by another contract is ${verified}`, async () => {
    service = await startTestService({ nodeCount });
    // Keeps blocks from looking old, however slow the machine is.
    service.devnet.mine(1, { timestampMs: service.clock.now() + 600_000 });
    const [direct, first, second] = [await newOrder(service), await newOrder(service), await newOrder(service)];
    const proven = await payDirectly(service, direct);
    const internal = await payByContract(service, first, second);
    service.devnet.mineUntilSolid();
    await untilPaid(service, direct, first, second);
    const urls = service.nodes.map(({ url }) => url);
    const producer = expect.stringMatching(/^[0-9a-f]{40}$/);
    expect(await evidenceOf(service, proven)).toMatchObject([{ verified: 'proven', producer }]);
    const shown = await evidenceOf(service, internal);
    expect(shown).toMatchObject([{ verified }, { verified }]);
    for (const { nodes } of shown) expect([...nodes].sort()).toEqual([...urls].sort());
    expect(await alarmKinds(service)).toEqual([]);
  });
});

test('Tether pauses the contract: an alarm tells it, what is sent meanwhile fails and pays nothing, and payments go on after the end', async () => {
  service = await startTestService();
  const order = await newOrder(service);
  service.devnet.usdt.pause();
  service.devnet.mine();
  const failed = await payDirectly(service, order);
  service.devnet.mineUntilSolid();
  expect(await untilAlarm(service, 'contract-paused')).toContain('paused all USDT transfers');
  await untilRecorded(service);
  expect(await evidenceOf(service, failed)).toEqual([]);
  expect(await statusOf(service, order)).toBe('PENDING');
  service.devnet.usdt.unpause();
  service.devnet.mine();
  await payDirectly(service, order);
  service.devnet.mineUntilSolid();
  await untilPaid(service, order);
});

test('Tether replaces the contract: an alarm names the new one, and payments count by the word of two operators', async () => {
  service = await startTestService({ nodeCount: 2 });
  service.devnet.usdt.deprecate(service.devnet.fakeUsdtContract);
  const orders = [await newOrder(service), await newOrder(service)] as const;
  const txIds = [await payDirectly(service, orders[0]), await payByContract(service, orders[1])];
  service.devnet.mineUntilSolid();
  const detail = await untilAlarm(service, 'contract-event');
  expect(detail).toContain('Deprecate');
  expect(detail).toContain(service.devnet.fakeUsdtContract);
  for (const [index, order] of orders.entries()) {
    await untilPaid(service, order);
    expect(await evidenceOf(service, txIds[index] ?? '')).toMatchObject([{ kind: 'matched', verified: 'agreed:2' }]);
  }
});

const PAID_BY_CONTRACT: [string, (order: PaidOrder) => Promise<void>][] = [
  [
    'before the first direct payment',
    async (order) => {
      await payByContract(service, order);
      service.devnet.mine(2);
      await payDirectly(service, await newOrder(service));
    },
  ],
  [
    'in a block that was missed, after one with a direct payment',
    async (order) => {
      const direct = await newOrder(service);
      await service.stopService();
      await payDirectly(service, direct);
      service.devnet.mine(1);
      await payByContract(service, order);
      service.devnet.mine(60);
      await service.restart();
      await untilPaid(service, direct);
    },
  ],
  [
    'after a restart, with no direct payment',
    async (order) => {
      service.devnet.mineUntilSolid();
      await untilAlarm(service, 'contract-event');
      await untilRecorded(service);
      await service.stopService();
      await service.restart();
      await payByContract(service, order);
    },
  ],
];

test.each(PAID_BY_CONTRACT)(
  'after Tether replaced the contract, a payment through another contract counts: %s',
  async (_when, pay) => {
    service = await startTestService({ nodeCount: 2 });
    const order = await newOrder(service);
    service.devnet.usdt.deprecate(service.devnet.fakeUsdtContract);
    service.devnet.mine();
    await untilExamined(service);
    await pay(order);
    service.devnet.mineUntilSolid();
    await untilPaid(service, order);
  },
);

const CALLS = ['/wallet/triggerconstantcontract'];
const REFUSED = { kind: 'error-200', paths: CALLS } as const;
/** The state before the event. */
const OLD_STATE = { kind: 'wrong-flags', paths: CALLS } as const;

test.each([
  ['one of two operators refuses constant calls', REFUSED, [1]],
  ['both refuse them', REFUSED, [0, 1]],
  ['one answers them from before the event', OLD_STATE, [1]],
  ['both answer them from before the event', OLD_STATE, [0, 1]],
] as const)(
  'the event that replaced the contract names its successor, so payments count while %s',
  async (...given) => {
    const [, fault, sick] = given;
    service = await startTestService({ nodeCount: 2 });
    const { devnet, nodes } = service;
    const [inItsBlock, later, direct] = [await newOrder(service), await newOrder(service), await newOrder(service)];
    await untilRecorded(service);
    for (const index of sick) nodes[index]?.setFault(fault);
    devnet.usdt.deprecate(devnet.fakeUsdtContract);
    await payByContract(service, inItsBlock);
    devnet.mine();
    await payByContract(service, later);
    await payDirectly(service, direct);
    devnet.mineUntilSolid();
    await untilPaid(service, inItsBlock, later, direct);
    await untilRecorded(service);
    expect(await alarmKinds(service)).toEqual(['contract-event']);
  },
);

test.each([
  ['answers from before the event', OLD_STATE, 'names none'],
  ['refuses constant calls', REFUSED, 'does not answer'],
] as const)(
  'after a restart, while one of two operators %s, blocks are held, nothing expires, no node is blamed, and an alarm says why',
  async (_what, fault, said) => {
    service = await startTestService({ nodeCount: 2 });
    const { devnet, nodes } = service;
    devnet.usdt.deprecate(devnet.fakeUsdtContract);
    const [block] = devnet.mine();
    devnet.mineUntilSolid();
    await untilAlarm(service, 'contract-event');
    const [paid, direct, unpaid] = [await newOrder(service), await newOrder(service), await newOrder(service)];
    await untilRecorded(service);
    await service.stopService();
    nodes[1]?.setFault(fault);
    await service.restart();
    const { number: recorded } = devnet.solid();
    await payByContract(service, paid);
    await payDirectly(service, direct);
    devnet.mine();
    const expiresAt = Date.parse((await readInvoice(service, unpaid.id)).body.expiresAt);
    devnet.mine(1, { timestampMs: Math.ceil(expiresAt / 3000) * 3000 + 3000 });
    devnet.mineUntilSolid();
    const detail = await untilAlarm(service, 'unverifiable-block');
    for (const part of [
      `block ${recorded + 1} and all later blocks are on hold: Tether replaced the USDT contract (Deprecate, block ${block?.number})`,
      `${nodes[0]?.url} names ${devnet.fakeUsdtContract}; ${nodes[1]?.url} ${said}`,
      'add a node from another operator',
    ]) {
      expect(detail).toContain(part);
    }
    devnet.mineUntilSolid();
    // The lag grows with the chain.
    await eventually(
      () => findChainStatus(service.db, 'devnet'),
      (found) => found?.status.nodeSolidNumber === devnet.solid().number,
    );
    expect(await untilAlarm(service, 'unverifiable-block')).toBe(detail);
    expect(await metricOf(service, 'quittance_block_verify_failures_total')).toBe(0);
    for (const order of [paid, direct, unpaid]) expect(await statusOf(service, order)).toBe('PENDING');
    nodes[1]?.setFault();
    // Quittance checks once a minute, and immediately after a start.
    await service.stopService();
    await service.restart();
    await untilPaid(service, paid, direct);
    expect((await readInvoice(service, paid.id)).body.payment.transaction).toMatchObject({ late: false });
    await untilStatus(service, unpaid.id, 'EXPIRED');
    await untilRecorded(service);
    expect(await alarmKinds(service)).toEqual(['contract-event']);
  },
);

test('with nodes of one operator, a payment of a contract that Tether replaced is held', async () => {
  service = await startTestService({ nodeCount: 1 });
  service.devnet.usdt.deprecate(service.devnet.fakeUsdtContract);
  const order = await newOrder(service);
  await payDirectly(service, order);
  service.devnet.mineUntilSolid();
  const { fakeUsdtContract } = service.devnet;
  const detail = await untilAlarm(service, 'unverifiable-block');
  expect(detail).toContain(`according to the nodes, the USDT contract was replaced (Deprecate) by ${fakeUsdtContract}`);
  expect(detail).toContain('Add a node from another operator');
  expect(detail).toContain('yet it has no logs');
  expect(await statusOf(service, order)).toBe('PENDING');
});

test('an alarm about the contract that cannot be stored holds its block, and is raised when it can be', async () => {
  service = await startTestService();
  await runSql(
    service,
    `create function refuse_alarm() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
     create trigger no_alarms before insert on alarms for each row when (new.kind = 'contract-paused')
       execute function refuse_alarm()`,
  );
  const failures = () => metricOf(service, 'quittance_watcher_failures_total');
  const before = await failures();
  service.devnet.usdt.pause();
  service.devnet.mineUntilSolid();
  await eventually(failures, (count) => count >= before + 2);
  await runSql(service, 'drop trigger no_alarms on alarms');
  expect(await untilAlarm(service, 'contract-paused')).toContain('paused all USDT transfers');
  await untilRecorded(service);
});

test('an alarm about the contract is raised for a block that was missed while the service was down', async () => {
  service = await startTestService();
  await untilExamined(service);
  await service.stopService();
  service.devnet.usdt.deprecate(service.devnet.fakeUsdtContract);
  service.devnet.mine(50);
  await service.restart();
  expect(await untilAlarm(service, 'contract-event')).toContain('Deprecate');
});
