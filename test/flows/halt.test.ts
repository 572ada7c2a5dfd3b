import type { Devnet } from '@quittance/devnet';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearHalt, findCursor, findHalt } from '../../src/core/store/chain/cursor.ts';
import { findChainStatus } from '../../src/core/store/chain/status.ts';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import {
  alarmKinds,
  metricOf,
  newOrder,
  orderPaidAtHead,
  payDirectly,
  statusOf,
  untilAlarm,
  untilPaid,
  untilRecorded,
} from '../support/chain-view.ts';
import { eventually, startTestService, type TestService } from '../support/service.ts';
import { type Networks, networksOf, startTwin } from '../support/twin.ts';

let service: TestService;
let other: Devnet;
let config: Networks;

/** Creates a service that has recorded irreversible blocks, and a second instance of its network with different irreversible blocks. */
beforeEach(async () => {
  config = {};
  service = await startTestService({ config });
  other = await startTwin(service.devnet);
  const order = await orderPaidAtHead(service);
  service.devnet.mineUntilSolid();
  await untilPaid(service, order);
  await untilRecorded(service);
  other.mine(10);
});
afterEach(async () => {
  await service?.stop();
  await other?.stop();
});

async function restartWith(urls: readonly string[], agreement: number): Promise<void> {
  config.networks = networksOf(service.devnet, urls, agreement);
  await service.restart();
}

const written = unlistedStatement(
  '',
  { cursor: 'text', heads: 'int8', transfers: 'int8', events: 'int8' },
  `select (select solid_number || ' ' || encode(solid_id, 'hex') from chain_cursors) as cursor,
    (select count(*) from head_blocks) as heads, (select count(*) from transfers) as transfers, (select count(*) from events) as events`,
);

/** Waits until the watcher has tried several more times without progress. */
async function untilRefusedAgain(): Promise<void> {
  const count = () => metricOf(service, 'quittance_watcher_failures_total', 'code="CHAIN_HALTED"');
  const before = await count();
  await eventually(count, (now) => now >= before + 3);
}

test('an irreversible block that contradicts the recorded one halts the watcher, writes nothing more, and leaves the API alone', async () => {
  await restartWith([other.url], 1);
  const detail = await untilAlarm(service, 'halted');
  expect(detail).toContain('quittance chain resume --network devnet');
  expect((await findHalt(service.db, 'devnet'))?.reason).toContain((await findCursor(service.db, 'devnet'))?.solid.id);
  const before = await service.db.run(written, []);
  const order = await newOrder(service);
  await payDirectly(service, order);
  other.mineUntilSolid();
  await untilRefusedAgain();
  const ready = (await (await fetch(`${service.metricsUrl}/readyz`)).json()) as { networks: { devnet: object } };
  expect(ready).toMatchObject({
    status: 'ready',
    networks: { devnet: { blind: true, alarms: expect.arrayContaining(['halted']) } },
  });
  expect(await service.db.run(written, [])).toEqual(before);
  expect(await statusOf(service, order)).toBe('PENDING');
});

test('a halt outlives a restart, comes back when it is cleared too early, and ends when the nodes show the recorded chain again', async () => {
  await restartWith([other.url], 1);
  await untilAlarm(service, 'halted');
  await restartWith([service.devnet.url], 1);
  const order = await newOrder(service);
  await payDirectly(service, order);
  service.devnet.mineUntilSolid();
  await untilRefusedAgain();
  expect(await statusOf(service, order)).toBe('PENDING');

  await restartWith([other.url], 1);
  await clearHalt(service.db, 'devnet');
  await eventually(
    () => findHalt(service.db, 'devnet'),
    (halt) => halt !== null,
  );

  await restartWith([service.devnet.url], 1);
  await clearHalt(service.db, 'devnet');
  await untilPaid(service, order);
  await eventually(
    () => alarmKinds(service),
    ({ length }) => length === 0,
  );
});

test('two operators that both contradict halt the watcher, and the reason names both', async () => {
  const second = await other.addNode();
  await restartWith([other.url, second.url], 2);
  const detail = await untilAlarm(service, 'halted');
  for (const { url } of [other, second]) expect(detail).toContain(url);
});

test('one operator of several that contradicts halts nothing: the others are followed, and what it shows is not believed', async () => {
  const second = await service.devnet.addNode();
  await restartWith([other.url, service.devnet.url, second.url], 2);
  const order = await newOrder(service);
  await payDirectly(service, order);
  service.devnet.mineUntilSolid();
  await untilPaid(service, order);
  expect(await findHalt(service.db, 'devnet')).toBe(null);
  expect(await alarmKinds(service)).not.toContain('halted');
  const reported = await eventually(
    () => findChainStatus(service.db, 'devnet'),
    (found) => found?.status.nodes[0]?.state === 'paused',
  );
  expect(reported?.status.nodes[0]?.reason).toContain('contradicts');
});
