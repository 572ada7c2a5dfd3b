import { test } from 'vitest';
import { startTestService } from '../support/service.ts';
import { findOpenAlarms } from '../../src/store/alarms.ts';
import { findCursor } from '../../src/store/chain-cursor.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { metricOf, untilExamined, orderPaidAtHead, statusOf } from '../support/chain-view.ts';
test('x', async () => {
  const service = await startTestService({});
  service.devnet.mine(1, { timestampMs: service.clock.now() + 600000 });
  await untilExamined(service);
  service.devnet.stall([0, 1]);
  const order = await orderPaidAtHead(service);
  service.devnet.mine(700, { stepMs: 1 });
  await delay(8000);
  console.log('full', await metricOf(service, 'quittance_chain_head_block'), (await findOpenAlarms(service.db, 'devnet')).map((a) => a.kind));
  service.devnet.unstall();
  service.devnet.mineUntilSolid({ stepMs: 1 });
  for (let i = 0; i < 8; i++) {
    await delay(2000);
    console.log(await statusOf(service, order), service.devnet.solid().number, (await findCursor(service.db, 'devnet'))?.solid.number, await metricOf(service, 'quittance_chain_head_block'), (await findOpenAlarms(service.db, 'devnet')).map((a) => a.kind));
  }
  await service.stop();
}, 60000);
