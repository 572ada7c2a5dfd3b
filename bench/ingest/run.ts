import { join } from 'node:path';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask } from '../child.ts';
import { type CatchUpPlan, measureCatchUp } from './catch-up.ts';
import { type DayPlan, FIRST_SHOWN, SOLID_DEPTH } from './day.ts';
import type { Floor } from './floor.ts';
import { type Live, measureLive } from './live.ts';
import { type IngestFigures, judgeIngest, showCaught, showIngest, showRow } from './report.ts';
import { measureServerAlone } from './server-alone.ts';
import { createShop, type IngestShop, planPayments } from './shop.ts';
import { startChainServer } from './start-chain-server.ts';

/** Measures the floor before and after the first catch-up, on its blocks. Live blocks appear every second. */
type Plan = { catchUps: CatchUpPlan[]; floorBlocks: number; bodyCount: number; live: LivePlan[] };
type LivePlan = { nodes: number; blocks: number; payEvery: number };

/** The latency of a real node. */
const FAR_MS = 100;
/** TronGrid's limit for a free key. */
const FREE_REQUESTS = 15;
/** Common to every plan: how many blocks to catch up on from one node, and in the other rows. */
const catchUpsOf = (one: number, other: number, limited: number): CatchUpPlan[] => [
  { nodes: 1, blocks: one, latencyMs: 0, requestsPerSecond: null },
  { nodes: 2, blocks: other, latencyMs: 0, requestsPerSecond: null },
  { nodes: 1, blocks: other, latencyMs: FAR_MS, requestsPerSecond: null },
  { nodes: 2, blocks: other, latencyMs: FAR_MS, requestsPerSecond: null },
  { nodes: 1, blocks: limited, latencyMs: FAR_MS, requestsPerSecond: FREE_REQUESTS },
];

/** A node that is queried over gRPC, which returns infos and no logs. Its blocks are those of a quiet day. */
const grpcRowsOf = (blocks: number): CatchUpPlan[] =>
  [0, FAR_MS].map((latencyMs) => ({
    ...{ nodes: 1, blocks, latencyMs, requestsPerSecond: null },
    ...{ isGrpc: true, transactions: 150 },
  }));

const DEFAULT: Plan = {
  catchUps: catchUpsOf(6000, 3000, 1500),
  floorBlocks: 1500,
  bodyCount: 120,
  live: [
    { nodes: 1, blocks: 60, payEvery: 4 },
    { nodes: 1, blocks: 60, payEvery: 1 },
    { nodes: 2, blocks: 60, payEvery: 4 },
  ],
};
/** A day of the main network, in which two slots are skipped every six hours. */
const DAY_BLOCKS = 28_792;
const WHOLE_DAY: Plan = { ...DEFAULT, catchUps: catchUpsOf(DAY_BLOCKS, DAY_BLOCKS, 1500) };
const ONE_DAY: Plan = {
  ...DEFAULT,
  catchUps: [0, FAR_MS].map((latencyMs) => ({ nodes: 1, blocks: DAY_BLOCKS, latencyMs, requestsPerSecond: null })),
  live: [],
};
const QUICK: Plan = {
  ...{ catchUps: catchUpsOf(800, 400, 250), floorBlocks: 300, bodyCount: 60 },
  live: [
    { nodes: 1, blocks: 30, payEvery: 1 },
    { nodes: 2, blocks: 30, payEvery: 3 },
  ],
};

const FIRST_NUMBER = 77_000_000;
const SLOT_MS = 3000;
const PAY_EVERY = 10;
/** A block that was examined before the invoices existed can't pay any of them. */
const FIRST_PAID = FIRST_SHOWN + 2;

/**
 * Measures a day of main-network traffic: catching up with full verification compared with the floor, and following the head of the chain.
 */
export async function runIngest(context: BenchContext): Promise<BenchResult> {
  const { flags, onProgress } = context;
  const planned = flags.quick ? QUICK : flags.full ? WHOLE_DAY : flags.day ? ONE_DAY : DEFAULT;
  const plan = flags.grpc ? { ...planned, catchUps: grpcRowsOf(flags.quick ? 1000 : 3000), live: [] } : planned;
  const catchUps = await measureDay(context, plan);
  const live: Live[] = [];
  for (const [index, of] of plan.live.entries()) {
    onProgress(`following the head: ${of.blocks} blocks, a payment every ${of.payEvery}, from ${of.nodes} node(s)`);
    live.push(await measureLive({ ...context, ...of, name: `live_${index}`, bodyCount: plan.bodyCount }));
  }
  const figures: IngestFigures = { ...catchUps, live };
  const targets = judgeIngest(figures);
  return { markdown: showIngest(figures), targets, record: { plan, ...figures } };
}

/** Each row has its own shop, day and server. The floor is measured before and after the first row. */
async function measureDay(context: BenchContext, plan: Plan): Promise<Omit<IngestFigures, 'live'>> {
  const figures: Omit<IngestFigures, 'live'> = { madeMs: 0, serverAlone: NaN, floors: [], catchUps: [] };
  for (const [index, row] of plan.catchUps.entries()) {
    const shop = await createShop(context.postgres, `catch_up_${index}`, null);
    const day = planDay(shop, row, plan.bodyCount);
    context.onProgress(`making ${row.blocks} blocks`);
    const { nodes, latencyMs, isGrpc = false } = row;
    const isWithoutLogs = context.flags['without-logs'];
    const [chain, ready] = await startChainServer({ day, nodes, delayMs: 0, latencyMs, isWithoutLogs, isGrpc });
    context.onStart(chain);
    const floorOf = () => ask<Floor>(chain, { kind: 'floor', first: FIRST_NUMBER, blocks: plan.floorBlocks });
    if (index === 0 && !isGrpc) {
      context.onProgress(`made in ${Math.round(ready.madeMs / 1000)} s; measuring server and floor alone`);
      await ask(chain, { kind: 'show', head: FIRST_NUMBER + row.blocks - 1 });
      const blocks = Math.min(plan.floorBlocks, row.blocks - SOLID_DEPTH);
      figures.madeMs = ready.madeMs;
      figures.serverAlone = await measureServerAlone(ready.urls[0] ?? '', day, blocks);
      await floorOf();
      figures.floors.push(await floorOf());
    }
    context.onProgress(`catching up: ${showRow(row)}`);
    // Profiles the row with two nodes and no latency, in which the service has the most work. With gRPC, both nodes use it.
    const isProfiled = context.flags.profile && (isGrpc || (nodes === 2 && latencyMs === 0));
    const execArgv = isProfiled ? ['--cpu-prof', `--cpu-prof-dir=${join(context.results, 'profiles')}`] : [];
    const { command, onStart } = context;
    const caught = await measureCatchUp({ command, onStart, execArgv, shop, day, chain, urls: ready.urls, plan: row });
    figures.catchUps.push(caught);
    // A row can take a quarter of an hour, and an interrupted run leaves no table.
    context.onProgress(showCaught(caught));
    if (index === 0 && !isGrpc) figures.floors.push(await floorOf());
    await chain.stop();
  }
  return figures;
}

function planDay(shop: IngestShop, { blocks, transactions }: CatchUpPlan, bodyCount: number): DayPlan {
  const firstTimeMs = Math.floor(Date.now() / SLOT_MS - blocks) * SLOT_MS;
  const numbers = Array.from(
    { length: Math.floor((blocks - FIRST_PAID) / PAY_EVERY) },
    (_, index) => FIRST_NUMBER + FIRST_PAID + index * PAY_EVERY,
  );
  const payments = planPayments(shop.accounts, numbers);
  const sizes = { bodyCount, blockCount: blocks, transactions };
  return { firstNumber: FIRST_NUMBER, firstTimeMs, slotMs: SLOT_MS, ...sizes, payments };
}
