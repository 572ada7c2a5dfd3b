import { join } from 'node:path';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, type Child, startScript } from '../child.ts';
import { type CatchUp, measureCatchUp } from './catch-up.ts';
import type { ChainReady, ChainServerPlan } from './chain-server.ts';
import { type DayPlan, FIRST_SHOWN, SOLID_DEPTH } from './day.ts';
import type { Floor } from './floor.ts';
import { type Live, measureLive } from './live.ts';
import { type IngestFigures, judgeIngest, showIngest } from './report.ts';
import { measureServerAlone } from './server-alone.ts';
import { createShop, planPayments } from './shop.ts';

/** `pairBlocks`: caught up from two nodes. Live blocks come every second. */
type Plan = { blocks: number; pairBlocks: number; floorBlocks: number; bodyCount: number; live: LivePlan[] };
type LivePlan = { nodes: number; blocks: number; payEvery: number };

const DEFAULT: Plan = {
  blocks: 6000,
  pairBlocks: 1500,
  floorBlocks: 1500,
  bodyCount: 120,
  live: [
    { nodes: 1, blocks: 60, payEvery: 4 },
    { nodes: 1, blocks: 60, payEvery: 1 },
    { nodes: 2, blocks: 60, payEvery: 4 },
  ],
};
/** A day of the main network: two slots are skipped every six hours. */
const WHOLE_DAY: Plan = { ...DEFAULT, blocks: 28_792 };
const QUICK: Plan = {
  ...{ blocks: 800, pairBlocks: 400, floorBlocks: 300, bodyCount: 60 },
  live: [
    { nodes: 1, blocks: 30, payEvery: 3 },
    { nodes: 2, blocks: 30, payEvery: 3 },
  ],
};

const FIRST_NUMBER = 77_000_000;
const SLOT_MS = 3000;
const PAY_EVERY = 10;
/** No block that was examined before there were invoices pays one. */
const FIRST_PAID = FIRST_SHOWN + 2;

/** A day of main-network traffic: caught up with full verification beside the floor, and followed at the head. */
export async function runIngest(context: BenchContext): Promise<BenchResult> {
  const { flags, onProgress } = context;
  const plan = flags.quick ? QUICK : flags.full ? WHOLE_DAY : DEFAULT;
  const catchUps = await measureDay(context, plan);
  const live: Live[] = [];
  for (const [index, of] of plan.live.entries()) {
    onProgress(`following the head: ${of.blocks} blocks, a payment every ${of.payEvery}, from ${of.nodes} node(s)`);
    live.push(await measureLive({ ...context, ...of, name: `live_${index}`, bodyCount: plan.bodyCount }));
  }
  const figures: IngestFigures = { ...catchUps, live };
  const targets = judgeIngest(figures);
  return { markdown: showIngest(figures, targets), record: { plan, targets, ...figures } };
}

async function measureDay(context: BenchContext, plan: Plan): Promise<Omit<IngestFigures, 'live'>> {
  const { command, postgres, flags, onStart, onProgress } = context;
  const [shop, pairShop] = [await createShop(postgres, 'one', null), await createShop(postgres, 'two', null)];
  const firstTimeMs = Math.floor(Date.now() / SLOT_MS - plan.blocks) * SLOT_MS;
  const common = { firstNumber: FIRST_NUMBER, firstTimeMs, slotMs: SLOT_MS, bodyCount: plan.bodyCount };
  const numbers = (blocks: number) =>
    Array.from(
      { length: Math.floor((blocks - FIRST_PAID) / PAY_EVERY) },
      (_, index) => FIRST_NUMBER + FIRST_PAID + index * PAY_EVERY,
    );
  const day: DayPlan = {
    ...common,
    blockCount: plan.blocks,
    payments: planPayments(shop.accounts, numbers(plan.blocks)),
  };
  onProgress(`making ${plan.blocks} blocks`);
  const [chain, ready] = await startChain({ day, nodes: 1, delayMs: 0 }, context);
  onProgress(`made and signed in ${Math.round(ready.madeMs / 1000)} s; measuring server and floor alone`);
  await ask(chain, { kind: 'show', head: FIRST_NUMBER + plan.blocks - 1 });
  const url = ready.urls[0] ?? '';
  const serverAlone = await measureServerAlone(url, day, Math.min(plan.floorBlocks, plan.blocks - SOLID_DEPTH));
  const floorOf = () => ask<Floor>(chain, { kind: 'floor', first: FIRST_NUMBER, blocks: plan.floorBlocks });
  await floorOf();
  const floors = [await floorOf()];
  const profile = flags.profile ? ['--cpu-prof', `--cpu-prof-dir=${join(context.results, 'profiles')}`] : [];
  const run = { command, onStart };
  onProgress(`catching up ${plan.blocks} blocks from one node`);
  const one: CatchUp = await measureCatchUp({ ...run, execArgv: [], shop, day, chain, urls: [url] });
  floors.push(await floorOf());
  await chain.stop();
  onProgress(`catching up ${plan.pairBlocks} blocks from two nodes`);
  const pairDay = {
    ...day,
    firstTimeMs: Math.floor(Date.now() / SLOT_MS - plan.pairBlocks) * SLOT_MS,
    blockCount: plan.pairBlocks,
    payments: planPayments(pairShop.accounts, numbers(plan.pairBlocks)),
  };
  const [pair, pairReady] = await startChain({ day: pairDay, nodes: 2, delayMs: 0 }, context);
  const { urls } = pairReady;
  const two: CatchUp = await measureCatchUp({
    ...run,
    execArgv: profile,
    shop: pairShop,
    day: pairDay,
    chain: pair,
    urls,
  });
  await pair.stop();
  return { madeMs: ready.madeMs, serverAlone, floors, catchUps: [one, two] };
}

async function startChain(plan: ChainServerPlan, { onStart }: BenchContext): Promise<[Child, ChainReady]> {
  const started = await startScript<ChainReady>('./ingest/chain-server.ts', { BENCH_CHAIN: JSON.stringify(plan) });
  onStart(started[0]);
  return started;
}
