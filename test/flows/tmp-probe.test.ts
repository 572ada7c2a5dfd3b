import { expect, test } from 'vitest';
import { createOrders, failedRounds, payOrders, readyz, untilHeadIsExamined, statusesOf } from '../support/fault-flow.ts';
import { payableOf, startTestService } from '../support/service.ts';

test('probe', async () => {
  const running = await startTestService();
  await untilHeadIsExamined(running);
  const orders = await createOrders(running);
  const { address, amountMicro } = await payableOf(running, orders.unpaid);
  running.nodes[0]?.setFault(
    { kind: 'forged-block', to: address, amountMicro },
    { kind: 'replayed-producers', producers: 'attacker' },
  );
  await payOrders(running, orders);
  running.devnet.mineUntilSolid();
  for (let i = 0; i < 12; i++) {
    running.devnet.mine(3);
    await new Promise((r) => setTimeout(r, 700));
    console.log(JSON.stringify({ i, st: await statusesOf(running, Object.values(orders)), f: await failedRounds(running), r: await readyz(running) }));
  }
  const q = { name: '', columns: { t: 'text' }, text: "select reason || ' ' || producers::text as t from producer_sets" } as const;
  console.log(await running.db.run(q, []));
  const q2 = { name: '', columns: { t: 'text' }, text: "select kind || ' ' || detail as t from alarms" } as const;
  console.log(await running.db.run(q2, []));
  await running.stop();
  expect(1).toBe(1);
}, 40_000);
