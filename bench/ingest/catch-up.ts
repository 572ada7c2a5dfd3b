import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { ask, type Child, type Server, startService } from '../child.ts';
import { cpuMs, descendants, proportionalBytes } from '../proc.ts';
import type { ChainCounts } from './chain-server.ts';
import { type DayPlan, FIRST_SHOWN, SOLID_DEPTH } from './day.ts';
import { checkPaid, type IngestShop, insertInvoices } from './shop.ts';

/**
 * The parameters of a catch-up. Each response takes `latencyMs` longer, and each node accepts only so many requests per second.
 * `transactions` is the number per block.
 */
export type CatchUpPlan = {
  nodes: number;
  blocks: number;
  latencyMs: number;
  requestsPerSecond: number | null;
  isGrpc?: boolean;
  transactions?: number;
};

/**
 * CPU times are milliseconds per block. `requests` are those of each node per block, and `paths` are those of the first node, by path.
 * `peakPssBytes` is the highest value of one measurement per second, including the processes that the service started.
 */
export type CatchUp = CatchUpPlan & {
  seconds: number;
  perSecond: number;
  peakBytes: number;
  peakPssBytes: number;
  payments: number;
  requests: number[];
  paths: Record<string, number>;
  cpu: { service: number; chainServer: number; postgres: number };
};

const SAMPLE_MS = 50;
const MEMORY_SAMPLE_MS = 1000;
/** A service that makes no progress for this long hangs. */
const STUCK_MS = 60_000;

/**
 * Lets the real service follow the start of the day, stops it, makes the whole day available, and starts the service again. The rate counts
 * from the first recorded batch, so it excludes the start of the process and the first look at the nodes.
 */
export async function measureCatchUp(options: {
  command: string;
  shop: IngestShop;
  day: DayPlan;
  chain: Child;
  urls: string[];
  plan: CatchUpPlan;
  execArgv: string[];
  onStart(child: Child): void;
}): Promise<CatchUp> {
  const { command, shop, day, chain, urls, plan, execArgv, onStart } = options;
  const limit =
    plan.requestsPerSecond === null ? '' : `${plan.isGrpc === true ? '&' : '#'}rps=${plan.requestsPerSecond}`;
  const last = day.firstNumber + day.blockCount - 1;
  await ask(chain, { kind: 'show', head: day.firstNumber + FIRST_SHOWN });
  const env = { QUITTANCE_ROLES: 'watcher', QUITTANCE_DEVNET_NODES: urls.map((url) => url + limit).join() };
  const client = new pg.Client(shop.connection);
  await client.connect();
  try {
    const first = await startService(command, shop.connection, { env });
    onStart(first);
    const start = await untilSolid(client, day.firstNumber + FIRST_SHOWN - SOLID_DEPTH);
    await first.stop();
    await insertInvoices(shop, day.payments);
    await ask(chain, { kind: 'show', head: last });
    await ask(chain, { kind: 'counts' });
    const service = await startService(command, shop.connection, { env, execArgv });
    onStart(service);
    const from = await untilSolid(client, start + 1);
    const before = await cpuOf(service, chain);
    const started = performance.now();
    const memory = watchMemory(service.pid);
    const to = await untilSolid(client, last - SOLID_DEPTH).finally(memory.end);
    const seconds = (performance.now() - started) / 1000;
    const after = await cpuOf(service, chain);
    const counts = await ask<ChainCounts>(chain, { kind: 'counts' });
    const peakBytes = await peakResidentBytes(service.pid);
    await service.stop();
    const payments = await checkPaid(shop, day.payments, to, urls.length > 1 ? `agreed:${urls.length}` : 'single-node');
    const blocks = to - from;
    const all = to - start;
    const used = (name: keyof CatchUp['cpu']) => (after[name] - before[name]) / blocks;
    return {
      ...{ ...plan, blocks, seconds, perSecond: blocks / seconds, peakBytes, payments },
      peakPssBytes: memory.peakBytes(),
      requests: counts.requests.slice(0, urls.length).map((of) => sum(of) / all),
      paths: Object.fromEntries(Object.entries(counts.requests[0] ?? {}).map(([path, count]) => [path, count / all])),
      cpu: { service: used('service'), chainServer: used('chainServer'), postgres: used('postgres') },
    };
  } finally {
    await client.end();
  }
}

/** Waits until the cursor reaches a height, and returns its position. */
export async function untilSolid(client: pg.Client, number: number): Promise<number> {
  let [seen, movedAt] = [-1, performance.now()];
  for (;;) {
    const { rows } = await client.query<{ solid: string }>('select solid_number as solid from chain_cursors');
    const solid = Number(rows[0]?.solid ?? -1);
    if (solid >= number) return solid;
    if (solid !== seen) [seen, movedAt] = [solid, performance.now()];
    if (performance.now() - movedAt > STUCK_MS)
      throw new Error(`the service stands at block ${solid}, short of ${number}`);
    await delay(SAMPLE_MS);
  }
}

async function cpuOf(service: Server, chain: Child): Promise<CatchUp['cpu']> {
  const ids = await descendants(process.pid);
  const times = new Map(await Promise.all(ids.map(async (id) => [id, await cpuMs(id)] as const)));
  const others = ids.filter((id) => id !== service.pid && id !== chain.pid);
  const of = (id: number) => times.get(id) ?? 0;
  return {
    service: of(service.pid),
    chainServer: of(chain.pid),
    postgres: others.reduce((total, id) => total + of(id), 0),
  };
}

/** Measures the memory of a process and of the processes that it started, at intervals until the end. */
function watchMemory(pid: number): { end(): void; peakBytes(): number } {
  let peak = 0;
  const look = async () => {
    const bytes = await Promise.all([pid, ...(await descendants(pid))].map(proportionalBytes));
    peak = Math.max(
      peak,
      bytes.reduce((total, each) => total + each, 0),
    );
  };
  const timer = setInterval(() => void look(), MEMORY_SAMPLE_MS);
  return { end: () => clearInterval(timer), peakBytes: () => peak };
}

async function peakResidentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
