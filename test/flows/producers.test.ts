import { producerAccount } from '@quittance/devnet/evm/keys';
import { afterEach, describe, expect, test } from 'vitest';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { findProducerSets } from '../../src/core/store/chain/producer-sets.ts';
import {
  alarmKinds,
  evidenceOf,
  headersOf,
  metricOf,
  newOrder,
  orderPaidAtHead,
  payDirectly,
  statusOf,
  untilAlarm,
  untilExamined,
  untilPaid,
  untilRecorded,
} from '../support/chain-view.ts';
import { eventually, startTestService, type TestService, type TestServiceOptions } from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let service: TestService;
afterEach(() => service?.stop());

async function start(options: TestServiceOptions): Promise<void> {
  service = await startTestService(options);
  service.devnet.mine(1, { timestampMs: service.clock.now() + AHEAD_MS });
  await untilExamined(service);
}

/**
 * Blocks are a millisecond apart, so that the watcher reads them without a pause. The chain's clock is ahead, so that they never look old.
 */
const QUICK = { stepMs: 1 };
const AHEAD_MS = 600_000;

const sets = () => findProducerSets(service.db, 'devnet', 20);

/** Counts the distinct producers of the blocks from a height to the head. */
async function buildersSince(blockNumber: number): Promise<number> {
  const headers = await headersOf(service, blockNumber, service.devnet.head().number);
  return new Set(headers.map(({ producer }) => producer)).size;
}

describe('a vote replaces producers', () => {
  test.each(
    someCases(
      [
        { producers: 27, replaced: 8, nodeCount: 2 },
        { producers: 5, replaced: 1, nodeCount: 1 },
      ],
      2,
    ),
  )(
    '$replaced of $producers by $nodeCount nodes: payments before, across and after it become PAID, and the history says who told it',
    async ({ producers, replaced, nodeCount }) => {
      await start({ producers, nodeCount });
      const before = await orderPaidAtHead(service);
      service.devnet.mineUntilSolid(QUICK);
      await untilPaid(service, before);
      const across = await orderPaidAtHead(service);
      service.devnet.mine(2, QUICK);
      service.devnet.replaceProducers(replaced);
      service.devnet.mine(producers, QUICK);
      await untilExamined(service);
      const after = await orderPaidAtHead(service);
      service.devnet.mineUntilSolid(QUICK);
      await untilPaid(service, across, after);
      const [newest, first, ...older] = await sets();
      expect(older).toEqual([]);
      expect(first).toMatchObject({ reason: 'first' });
      expect(newest).toMatchObject({ reason: 'vote', nodes: service.nodes.map(({ url }) => url) });
      const known = new Set(first?.producers.map(({ account }) => account));
      expect(newest?.producers.filter(({ account }) => !known.has(account))).toHaveLength(replaced);
      expect(newest?.producers).toHaveLength(producers);
      expect(await alarmKinds(service)).toEqual([]);
    },
  );

  test('more than can change at once is refused with an alarm: nothing after it is PAID, and orders are still created', async () => {
    await start({ nodeCount: 2 });
    const before = await orderPaidAtHead(service);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, before);
    service.devnet.replaceProducers(3);
    const after = await newOrder(service);
    await payDirectly(service, after);
    service.devnet.mineUntilSolid(QUICK);
    expect(await untilAlarm(service, 'producers-refused')).toContain('3 of them are new');
    expect((await newOrder(service)).id).toMatch(/^inv_/);
    expect(await statusOf(service, after)).not.toBe('PAID');
    expect(await sets()).toHaveLength(1);
  });

  test('changes that are small one by one count together within one period', async () => {
    await start({});
    service.devnet.replaceProducers(1);
    service.devnet.mine(5, QUICK);
    await eventually(sets, ({ length }) => length === 2);
    service.devnet.setProducers([5, 6, 2, 3, 4]);
    service.devnet.mine(5, QUICK);
    await untilAlarm(service, 'producers-refused');
    expect(await sets()).toHaveLength(2);
  });

  test('a vote that was refused and is undone leaves nothing behind: the payments made meanwhile become PAID without a restart', async () => {
    await start({});
    service.devnet.replaceProducers(3);
    const order = await newOrder(service);
    await payDirectly(service, order);
    service.devnet.mine(5, QUICK);
    await untilAlarm(service, 'producers-refused');
    service.devnet.setProducers([0, 1, 2, 3, 4]);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    await eventually(
      () => alarmKinds(service),
      ({ length }) => length === 0,
    );
  });
});

describe('a producer signs with another key', () => {
  test.each([1, 2])('it is asked for anew from %i nodes and recorded as a change of key', async (nodeCount) => {
    await start({ nodeCount });
    service.devnet.rotateSigner(2);
    const order = await orderPaidAtHead(service);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    const [newest, first] = await eventually(sets, ({ length }) => length === 2);
    expect(newest?.reason).toBe('key');
    const members = (set: typeof first) => set?.producers.map(({ account }) => account);
    expect(members(newest)).toEqual(members(first));
    const signers = new Set(first?.producers.map(({ signer }) => signer));
    expect(newest?.producers.filter(({ signer }) => !signers.has(signer))).toHaveLength(1);
    expect(await alarmKinds(service)).toEqual([]);
  });

  test('a single node cannot pass off keys of its own for those of the producers, however long it goes on', async () => {
    await start({});
    const victim = await newOrder(service);
    service.nodes[0]?.setFault(
      { kind: 'forged-block', to: victim.address, amountMicro: victim.amountMicro },
      { kind: 'replayed-producers', producers: 'attacker' },
    );
    service.devnet.mine(10, QUICK);
    // One new key is as plausible as one new member. Further ones are refused each time, for longer than it takes until the producers are
    // queried without a block requiring it.
    await eventually(
      () => findOpenAlarms(service.db, 'devnet'),
      (alarms) => alarms.some(({ kind, seenCount }) => kind === 'producers-refused' && seenCount >= 5),
    );
    service.devnet.mine(10, QUICK);
    expect(await statusOf(service, victim)).not.toBe('PAID');
    service.nodes[0]?.setFault();
    const order = await newOrder(service);
    await payDirectly(service, order);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    expect(await statusOf(service, victim)).toBe('PENDING');
  });
});

describe('a node replays producers that were voted out', () => {
  test('of two nodes: the producers stay, with an alarm, and payments go on', async () => {
    // Of seven producers, two may change in a period.
    await start({ producers: 7, nodeCount: 2 });
    service.devnet.replaceProducers(1);
    service.devnet.mine(7, QUICK);
    await eventually(sets, ({ length }) => length === 2);
    service.nodes[0]?.setFault({ kind: 'replayed-producers' });
    const order = await orderPaidAtHead(service);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    // A block with a new key makes the watcher query the nodes.
    service.devnet.rotateSigner(3);
    service.devnet.mine(7, QUICK);
    await untilAlarm(service, 'producers-refused');
    expect(await sets()).toHaveLength(2);
    service.nodes[0]?.setFault();
    const next = await newOrder(service);
    await payDirectly(service, next);
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, next);
    expect((await sets()).map(({ reason }) => reason)).toEqual(['key', 'vote', 'first']);
    await eventually(
      () => alarmKinds(service),
      ({ length }) => length === 0,
    );
  });
});

describe('producers change while the service is down', () => {
  test('one that was voted in and out again meanwhile makes blocks that are recorded when known producers built on them', async () => {
    await start({ producers: 5 });
    const orders = await Promise.all([0, 1, 2].map(() => newOrder(service)));
    const [before, between, after] = orders;
    if (before === undefined || between === undefined || after === undefined) throw new Error('three orders');
    await service.stopService();
    await payDirectly(service, before);
    service.devnet.mine(20, QUICK);
    service.devnet.replaceProducers(1);
    // Its own block, and no other's, contains the payment.
    while (service.devnet.mine().length === 1 && (await lastProducer()) !== producerAccount(4));
    const txId = await payDirectly(service, between);
    service.devnet.mine();
    expect(await lastProducer()).toBe(producerAccount(5));
    service.devnet.mine(20, QUICK);
    service.devnet.replaceProducers(1);
    await payDirectly(service, after);
    service.devnet.mine(30, QUICK);
    await service.restart();
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, ...orders);
    await untilRecorded(service);
    expect(await evidenceOf(service, txId)).toMatchObject([{ verified: 'proven', producer: producerAccount(5) }]);
    expect((await sets()).map(({ reason }) => reason)).toEqual(['vote', 'first']);
    expect(await alarmKinds(service)).toEqual([]);
  });
});

describe('what is irreversible is counted here', () => {
  test.each(
    someCases(
      [
        [5, 4],
        [27, 19],
      ],
      2,
    ),
  )(
    'of %i producers %i must have built on a payment before it is PAID, whatever the node claims',
    async (producers, threshold) => {
      await start({ producers });
      service.nodes[0]?.setFault({ kind: 'solid-ahead' });
      const order = await orderPaidAtHead(service);
      for (let built = 1; built < threshold; built += 1) {
        await untilExamined(service);
        expect(await buildersSince(order.blockNumber)).toBe(built);
        expect(await statusOf(service, order)).toBe('CONFIRMING');
        service.devnet.mine();
      }
      expect(await buildersSince(order.blockNumber)).toBe(threshold);
      await untilPaid(service, order);
    },
  );

  test('while too many producers are away a payment stays CONFIRMING, and is PAID when they return', async () => {
    await start({ producers: 5 });
    service.nodes[0]?.setFault({ kind: 'solid-ahead' });
    service.devnet.stall([0, 1]);
    const order = await orderPaidAtHead(service);
    service.devnet.mine(60, QUICK);
    await untilExamined(service);
    expect(await metricOf(service, 'quittance_chain_own_solid_block')).toBeLessThan(order.blockNumber);
    expect(await statusOf(service, order)).toBe('CONFIRMING');
    service.devnet.unstall();
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    expect(await alarmKinds(service)).toEqual([]);
  });

  test('a node whose irreversible blocks do not become so by our count is told apart, and all is well when the producers return', async () => {
    await start({ producers: 5 });
    service.nodes[0]?.setFault({ kind: 'solid-ahead' });
    service.devnet.stall([0, 1]);
    const order = await orderPaidAtHead(service);
    service.devnet.mine(220, QUICK);
    await eventually(
      () => metricOf(service, 'quittance_chain_solid_block'),
      (claimed) => claimed === service.devnet.head().number,
    );
    service.devnet.mine(120, QUICK);
    await untilAlarm(service, 'not-solid');
    expect(await statusOf(service, order)).toBe('CONFIRMING');
    service.devnet.unstall();
    service.devnet.mineUntilSolid(QUICK);
    await untilPaid(service, order);
    await eventually(
      () => alarmKinds(service),
      ({ length }) => length === 0,
    );
  });
});

async function lastProducer(): Promise<string | undefined> {
  const { number } = service.devnet.head();
  return (await headersOf(service, number, number))[0]?.producer;
}
