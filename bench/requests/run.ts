import type { BenchContext, BenchResult } from '../bench-context.ts';
import { startScript, startService } from '../child.ts';
import { onServer } from '../databases.ts';
import { createShop } from '../ingest/shop.ts';
import { type Target as Loaded, type Sample, stretch } from '../rounds.ts';
import { emptyInvoices } from '../seed.ts';
import { measureLookUps } from './look-up.ts';
import { judgeRequests, type RequestFigures, showRequests } from './report.ts';

type Plan = { rounds: number; seconds: number; warmUpSeconds: number; connections: number; logged: number };
const FULL: Plan = { rounds: 12, seconds: 5, warmUpSeconds: 3, connections: 64, logged: 2_000_000 };
const QUICK: Plan = { rounds: 3, seconds: 2, warmUpSeconds: 2, connections: 64, logged: 200_000 };

/** Measures creations with and without the request log in turn, and looking up one of millions of requests. */
export async function runRequests(context: BenchContext): Promise<BenchResult> {
  const { postgres, flags, onStart, onProgress } = context;
  const plan = flags.quick ? QUICK : FULL;
  const [load] = await startScript('./load.ts', {});
  onStart(load);
  const shops = {
    on: await createShop(postgres, 'requests_on', null),
    off: await createShop(postgres, 'requests_off', null),
  };
  // Two processes with the same work differ by a few percent for as long as they live, so each period of load has its own process.
  const measure = async (log: 'on' | 'off'): Promise<Omit<Sample, 'round'>> => {
    const { connection, apiKey } = shops[log];
    const server = await startService(context.command, connection, { env: { QUITTANCE_REQUEST_LOG: log } });
    onStart(server);
    const target: Loaded = { side: 'api', tables: 'fresh', server, connection, paths: [] };
    const run = async (seconds: number) => {
      await onServer(connection, (client) => emptyInvoices(client));
      return stretch({ target, work: 'create', connections: plan.connections, seconds, load, apiKey });
    };
    await run(plan.warmUpSeconds);
    const sample = await run(plan.seconds);
    await server.stop();
    return sample;
  };
  const samples: Record<'on' | 'off', Omit<Sample, 'round'>[]> = { on: [], off: [] };
  for (let round = 1; round <= plan.rounds; round++) {
    // Every other round runs in reverse order.
    for (const log of round % 2 === 1 ? (['on', 'off'] as const) : (['off', 'on'] as const)) {
      samples[log].push(await measure(log));
    }
    const [on, off] = [samples.on.at(-1), samples.off.at(-1)].map((sample) => Math.round(sample?.perSecond ?? 0));
    onProgress(`round ${round} of ${plan.rounds}: ${on} creations/s with the log, ${off} without`);
  }
  onProgress(`looking up one of ${plan.logged} requests`);
  const { connection } = await createShop(postgres, 'requests_full', null);
  const figures: RequestFigures = {
    logged: samples.on,
    silent: samples.off,
    lookUpsMs: await measureLookUps(connection, plan.logged),
  };
  return { markdown: showRequests(figures), targets: judgeRequests(figures), record: { plan, ...figures } };
}
