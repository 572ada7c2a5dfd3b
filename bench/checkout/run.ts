import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { startScript, startService } from '../child.ts';
import { cpuMs, residentBytes } from '../proc.ts';
import { createChain, startMining } from './chain.ts';
import {
  type Bench,
  countListening,
  measureBlind,
  measureBurst,
  measureChanges,
  measureIdle,
  order,
} from './measure.ts';
import type { LoadAnswer } from './readers.ts';
import { type CheckoutFigures, judgeCheckout, showCheckout } from './report.ts';

type Plan = { pages: number; idleSeconds: number; changes: number; loadSeconds: number; rounds: number };
const DEFAULT: Plan = { pages: 5000, idleSeconds: 48, changes: 500, loadSeconds: 8, rounds: 3 };
const QUICK: Plan = { pages: 1000, idleSeconds: 15, changes: 60, loadSeconds: 3, rounds: 1 };

/** One page in five shows a payment in progress. */
const CONFIRMING_SHARE = 0.2;
/** File descriptors that the service and the readers need in addition to one socket per page. */
const SPARE_FILES = 500;
const SETTLE_MS = 5000;

/**
 * Measures the open pages of many invoices on one process: memory, queries, CPU, latencies, and the cost of reading pages at the same time.
 */
export async function runCheckout(context: BenchContext): Promise<BenchResult> {
  const plan = context.flags.quick ? QUICK : DEFAULT;
  await checkOpenFiles(plan.pages + SPARE_FILES);
  const bench = await start(context, plan);
  try {
    const figures = await measure(bench, plan, context.onProgress);
    const targets = judgeCheckout(figures);
    return { markdown: showCheckout(figures), targets, record: { plan, ...figures } };
  } finally {
    await bench.chain.client.end();
  }
}

/** Example: `Max open files            20000                20000                files` */
async function checkOpenFiles(needed: number): Promise<void> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const hard = /^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1];
  if (hard !== undefined && Number(hard) < needed) {
    throw new Error(
      `a process may have ${hard} open files, and ${needed} are needed: raise the hard limit (ulimit -Hn)`,
    );
  }
}

async function start({ command, postgres, onStart }: BenchContext, { pages }: Plan): Promise<Bench> {
  const confirming = Math.round(pages * CONFIRMING_SHARE);
  const chain = await createChain(postgres, { confirming, waiting: pages - confirming });
  const service = await startService(command, chain.connection, { env: { QUITTANCE_TRUST_PROXY: 'loopback' } });
  onStart(service);
  const [readers] = await startScript('./checkout/readers.ts', {});
  onStart(readers);
  return { chain, service, readers, tokens: [...chain.waiting, ...chain.confirming].map(({ token }) => token) };
}

async function measure(bench: Bench, plan: Plan, onProgress: (text: string) => void): Promise<CheckoutFigures> {
  const { chain, service, readers, tokens } = bench;
  const { pages, idleSeconds, loadSeconds } = plan;
  const memory = () => residentBytes(service.pid);
  const open = () => order(readers, { kind: 'open', url: service.url, tokens });
  const load = () => order<LoadAnswer>(readers, { kind: 'load', url: service.url, tokens, seconds: loadSeconds });
  const mining = startMining(chain);
  try {
    onProgress('nothing is open');
    await delay(SETTLE_MS);
    const none = { idle: await measureIdle(bench, idleSeconds), memory: await memory() };
    onProgress(`opening ${pages} pages`);
    const [startedMs, cpuBefore] = [performance.now(), await cpuMs(service.pid)];
    await open();
    const opening = { seconds: (performance.now() - startedMs) / 1000, cpuMs: (await cpuMs(service.pid)) - cpuBefore };
    await delay(SETTLE_MS);
    const memoryOpen = await memory();
    await chain.sightAgain();
    onProgress('letting them be open');
    const idle = await measureIdle(bench, idleSeconds);
    const listening = await countListening(chain);
    onProgress('changing one invoice at a time, and then a fifth of them at once');
    const changes = await measureChanges(bench, plan.changes);
    const burstMs = await measureBurst(bench);
    await mining.stop();
    onProgress('waiting until all are blind');
    const blindMs = await measureBlind(bench);
    mining.start();
    onProgress('reading pages beside them and alone');
    const [beside, alone]: [LoadAnswer[], LoadAnswer[]] = [[], []];
    await load();
    for (let round = 1; round <= plan.rounds; round++) {
      if (round > 1) await open();
      beside.push(await load());
      await order(readers, { kind: 'close' });
      await delay(SETTLE_MS);
      alone.push(await load());
    }
    return {
      pages,
      opening,
      none,
      open: { idle, memory: memoryOpen },
      listening,
      changes,
      burstMs,
      blindMs,
      alone,
      beside,
    };
  } finally {
    await mining.stop();
  }
}
