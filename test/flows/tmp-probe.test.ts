import { test } from 'vitest';
import { bend, createOrders, metricOf, payOrders, readyz, untilHeadIsExamined, statusesOf } from '../support/fault-flow.ts';
import { startTestService } from '../support/service.ts';

test('probe', async () => {
  const running = await startTestService({ nodeCount: 3 });
  await untilHeadIsExamined(running);
  const orders = await createOrders(running);
  await bend(running, orders, [[0, ['hang']]]);
  await payOrders(running, orders);
  running.devnet.mineUntilSolid();
  const t0 = performance.now();
  for (let i = 0; i < 25; i++) {
    await new Promise((r) => setTimeout(r, 400));
    const req = await Promise.all(running.nodes.map(({ url }) => metricOf(running, 'quittance_node_requests_total', url)));
    const p = await Promise.all(running.nodes.map(({ url }) => metricOf(running, 'quittance_node_paused', url)));
    const st = await statusesOf(running, [orders.direct, orders.internal]);
    console.log(Math.round(performance.now() - t0), ...req, '|', ...p, (await readyz(running)).headBlock, (await readyz(running)).solidBlock, ...st);
    if (st.every((s) => s === 'PAID')) break;
  }
  await running.stop();
}, 40_000);
