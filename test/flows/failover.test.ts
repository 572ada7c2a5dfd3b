import { afterEach, describe, expect, test } from 'vitest';
import { metricOf, scrape } from '../support/chain-view.ts';
import {
  alarmsOf,
  createOrders,
  expectTruth,
  failedRounds,
  payOrders,
  readyz,
  statusesOf,
  untilAlarm,
  untilCalm,
  untilHeadIsExamined,
} from '../support/fault-flow.ts';
import {
  createInvoice,
  eventually,
  payableOf,
  readInvoice,
  startTestService,
  type TestService,
} from '../support/service.ts';
import { someCases } from '../support/some-cases.ts';

let service: TestService | null = null;
afterEach(async () => {
  await service?.stop();
  service = null;
});

/**
 * TRON's block time. The pool waits 0.6 of it for a small answer, but at least 1.5 s, so a shorter one would leave a slow machine too little
 * time.
 */
const BLOCK_MS = 3000;

type Sight = { head: number; behind: number; blind: number; second: number };

/** Returns how far the watcher is, and how many blocks behind the published ones. */
async function look(running: TestService): Promise<Sight> {
  // Read the head before the request, which may take longer than a block.
  const { number } = running.devnet.head();
  const { headBlock } = await readyz(running);
  const behind = number - headBlock;
  const metric = await scrape(running);
  const second = metric('quittance_node_requests_total', running.nodes[1]?.url ?? '');
  return { head: headBlock, behind, blind: metric('quittance_chain_blind'), second };
}

/** Watches until this many more blocks were examined. */
async function watchBlocks(running: TestService, count: number): Promise<Sight[]> {
  const seen = [await look(running)];
  await eventually(
    async () => {
      seen.push(await look(running));
      return seen.at(-1);
    },
    (last) => (last?.head ?? 0) >= (seen[0]?.head ?? 0) + count,
  );
  return seen;
}

describe.concurrent('blocks come by themselves, and the preferred one of three nodes', () => {
  test.for(someCases(['hang', 'unavailable-503', 'limited-429', 'reset', 'lag'] as const, 3))(
    'answers with %s: each block is examined before the second one after it, nobody is blind, and the node is used again when it is well',
    async (kind, { onTestFinished }) => {
      const running = await startTestService({ nodeCount: 3, blockMs: BLOCK_MS });
      onTestFinished(() => running.stop());
      await untilHeadIsExamined(running);
      await watchBlocks(running, 1);
      running.nodes[0]?.setFault({ kind });
      const seen = await watchBlocks(running, 3);
      // Each block is examined within one block time of its publication: at most one block and the one being read are missing.
      expect(Math.max(...seen.map(({ behind }) => behind))).toBeLessThanOrEqual(2);
      expect(seen.filter(({ blind }) => blind !== 0)).toEqual([]);
      running.nodes[0]?.setFault();
      // Only once the first node delivers blocks again is the second one no longer queried.
      let mark = await look(running);
      await eventually(
        async () => {
          const now = await look(running);
          if (now.second !== mark.second) mark = now;
          return { now, mark };
        },
        ({ now }) => now.head >= mark.head + 2,
      );
    },
  );
});

test('a node whose head goes back and forth between answers stops nothing and raises no alarm', async () => {
  service = await startTestService();
  const running = service;
  // Keeps blocks from looking old, however slow the machine is.
  running.devnet.mine(1, { timestampMs: running.clock.now() + 600_000 });
  await untilHeadIsExamined(running);
  const orders = await createOrders(running);
  await payOrders(running, orders);
  const asked = () => metricOf(running, 'quittance_node_requests_total', running.nodes[0]?.url ?? '');
  for (const blocks of [1, 3, 0, 2, 1, 3, 2, 0, 3, 1, 2, 3]) {
    running.devnet.mine();
    running.devnet.setFault({ kind: 'lag', blocks });
    const before = await asked();
    await eventually(asked, (count) => count >= before + 2);
  }
  running.devnet.setFault();
  await expectTruth(running, orders, { evidence: 'single-node' });
  await untilHeadIsExamined(running);
  expect(await failedRounds(running)).toBe(0);
  expect(await alarmsOf(running, 'blind')).toEqual([]);
});

test('all nodes are down past the end of an invoice: it is told everywhere, nothing expires that may have been paid, and all goes on by itself', async () => {
  service = await startTestService({ nodeCount: 2 });
  const running = service;
  await untilHeadIsExamined(running);
  const orders = await createOrders(running);
  const late = (await createInvoice(running)).body.invoiceId as string;
  await payOrders(running, orders);
  for (const { setFault } of running.nodes) setFault({ kind: 'unavailable-503' });
  // Paid in time, but no one sees it.
  running.devnet.mineUntilSolid();
  running.clock.advance(31 * 60_000);
  await untilAlarm(running, 'blind');
  await eventually(
    () => readyz(running),
    ({ blind, alarms }) => blind && alarms.includes('blind'),
  );
  expect((await readyz(running)).reason).toContain('the newest examined block is');
  expect(await metricOf(running, 'quittance_chain_blind')).toBe(1);
  const [alarm] = await alarmsOf(running, 'blind');
  expect(running.nodes.some(({ url }) => alarm?.detail.includes(url))).toBe(true);
  expect(await statusesOf(running, [...Object.values(orders), late])).toEqual(Array(4).fill('PENDING'));
  expect((await createInvoice(running)).status).toBe(201);
  // Paid after its deadline, which no one sees either.
  const { address, amountMicro } = await payableOf(running, late);
  await running.payer.transfer({ contract: running.devnet.usdtContract, to: address, amountMicro });
  running.devnet.mine(1, { timestampMs: Math.ceil(running.clock.now() / 3000) * 3000 });
  running.devnet.mineUntilSolid();
  for (const { setFault } of running.nodes) setFault();
  await eventually(
    () => statusesOf(running, [orders.direct, orders.internal, orders.unpaid, late]),
    (statuses) => statuses.join() === 'PAID,PAID,EXPIRED,PAID',
  );
  const isLate = async (id: string) => (await readInvoice(running, id)).body.payment.transaction.late;
  expect([await isLate(orders.direct), await isLate(orders.internal), await isLate(late)]).toEqual([
    false,
    false,
    true,
  ]);
  await untilCalm(running);
  await eventually(
    async () => [await metricOf(running, 'quittance_chain_blind'), (await readyz(running)).blind] as const,
    ([gauge, isBlind]) => gauge === 0 && isBlind === false,
  );
});
