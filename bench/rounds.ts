import { once } from 'node:events';
import type pg from 'pg';
import { encodeId } from '../src/core/domain/ids.ts';
import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';
import { ask, type Child, type Server, startBaseline, startScript, startService } from './child.ts';
import { createDatabases, onServer, SIDES, type Side, TABLES, type Tables, tableOf } from './databases.ts';
import type { ChainServerPlan } from './ingest/chain-server.ts';
import { startChainServer } from './ingest/start-chain-server.ts';
import type { LoadJob, LoadResult } from './load.ts';
import { cpuMs, descendants, machineCpuMs } from './proc.ts';
import { emptyInvoices, sampleIds } from './seed.ts';

export const WORKS = ['create', 'read'] as const;
export type Work = (typeof WORKS)[number];

export type Plan = {
  invoiceCount: number;
  connections: number[];
  rounds: number;
  seconds: number;
  warmUpSeconds: number;
};

/** The results of one period of load. CPU times are microseconds per successful request. */
export type Sample = {
  round: number;
  work: Work;
  tables: Tables;
  side: Side;
  connections: number;
  perSecond: number;
  p50: number;
  p99: number;
  serverCpuUs: number;
  postgresCpuUs: number;
  loadCpuUs: number;
  /** The number of cores that other processes kept busy meanwhile. */
  otherCores: number;
};

export type Target = { side: Side; tables: Tables; server: Server; connection: PostgresConnection; paths: string[] };

/**
 * Measures all sides in turn. Within a round, each figure of the service is measured seconds apart from the same figures of the baselines,
 * and every other round runs in reverse order. All servers run all the time; those without load wait.
 */
export async function measureRounds(options: {
  plan: Plan;
  command: string;
  postgres: PostgresConnection;
  /** The caller calls the cleanup functions at the end, in reverse order. */
  onStart(child: Child): void;
  onProgress(text: string): void;
}): Promise<Sample[]> {
  const { plan, command, postgres, onStart, onProgress } = options;
  onProgress(`seeding ${plan.invoiceCount} invoices`);
  const { shop, connectionOf } = await createDatabases(postgres, plan.invoiceCount);
  const [load] = await startScript('./load.ts', {});
  onStart(load);
  const nodeUrl = await startChain(onStart);
  const start = async (side: Side, connection: PostgresConnection) => {
    if (side === 'api') return startService(command, connection);
    if (side !== 'default') return startBaseline(connection, shop, tableOf(side));
    await onServer(connection, (client) => beginAtHead(client, nodeUrl));
    const env = { QUITTANCE_ROLES: 'api,watcher,webhooks', QUITTANCE_DEVNET_NODES: nodeUrl };
    return startService(command, connection, { env });
  };
  const targets: Target[] = [];
  for (const tables of TABLES) {
    for (const side of SIDES) {
      const connection = connectionOf(side, tables);
      const server = await start(side, connection);
      onStart(server);
      targets.push({ side, tables, server, connection, paths: [] });
    }
  }
  const run = async (target: Target, work: Work, connections: number, seconds: number) => {
    if (work === 'create' && target.tables === 'fresh') {
      await onServer(target.connection, (client) => emptyInvoices(client, tableOf(target.side)));
    }
    if (work === 'read' && (target.tables === 'fresh' || target.paths.length === 0)) {
      target.paths = await onServer(target.connection, (client) => pathsOf(client, target.side));
    }
    return stretch({ target, work, connections, seconds, load, apiKey: shop.apiKey });
  };
  onProgress('warming up');
  const most = Math.max(...plan.connections);
  for (const work of WORKS) for (const target of targets) await run(target, work, most, plan.warmUpSeconds);
  const samples: Sample[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const ordered = round % 2 === 1 ? targets : targets.toReversed();
    for (const connections of plan.connections) {
      onProgress(`round ${round} of ${plan.rounds}, ${connections} connections`);
      for (const work of WORKS) {
        for (const target of ordered) {
          samples.push({ ...(await run(target, work, connections, plan.seconds)), round });
        }
      }
    }
  }
  return samples;
}

/** Starts a chain with the block size and interval of the main network, for the watchers. Returns its node's URL. */
async function startChain(onStart: (child: Child) => void): Promise<string> {
  const day = { firstNumber: 77_000_000, slotMs: 3000, blockCount: 2000, bodyCount: 60, payments: [] };
  const firstTimeMs = (Math.floor(Date.now() / day.slotMs) - 60) * day.slotMs;
  const plan: ChainServerPlan = { day: { ...day, firstTimeMs }, nodes: 1, delayMs: 500 };
  const [chain, { urls }] = await startChainServer(plan);
  onStart(chain);
  await ask(chain, { kind: 'live' });
  return urls.join();
}

/** Lets the watcher begin at the irreversible block. Otherwise it would begin before the oldest invoice, where this chain has no blocks. */
async function beginAtHead(client: pg.Client, nodeUrl: string): Promise<void> {
  const read = async (place: string, which: object) => {
    const body = JSON.stringify({ ...which, detail: false });
    const answer = await fetch(`${nodeUrl}/${place}/getblock`, { method: 'POST', body });
    const { blockID, block_header } = (await answer.json()) as {
      blockID: string;
      block_header: { raw_data: { number: number; timestamp: number } };
    };
    return { id: blockID, ...block_header.raw_data };
  };
  const [solid, genesis] = [await read('walletsolidity', {}), await read('wallet', { id_or_num: '0' })];
  await client.query(
    `insert into chain_cursors (network, solid_number, solid_id, solid_time, genesis_id)
     values ('devnet', $1, decode($2, 'hex'), $3, decode($4, 'hex'))`,
    [solid.number, solid.id, new Date(solid.timestamp), genesis.id],
  );
}

const isService = (side: Side) => side === 'default' || side === 'api';

async function pathsOf(client: Parameters<typeof sampleIds>[0], side: Side): Promise<string[]> {
  const ids = await sampleIds(client, tableOf(side));
  return ids.map((id) => (isService(side) ? `/v1/invoices/${encodeId('inv', id)}` : `/invoices/${id}`));
}

/** Puts one target under load for a while. */
export async function stretch(options: {
  target: Target;
  work: Work;
  connections: number;
  seconds: number;
  load: Child;
  apiKey: string;
}): Promise<Omit<Sample, 'round'>> {
  const { target, work, connections, seconds, load, apiKey } = options;
  const { side, tables, server, paths } = target;
  const path = isService(side) ? '/v1/invoices' : '/invoices';
  const common = { url: `${server.url}${path}`, connections, seconds };
  const headers: Record<string, string> = isService(side) ? { 'x-api-key': apiKey } : {};
  const job: LoadJob =
    work === 'create' ? { ...common, headers, kind: 'create' } : { ...common, headers, kind: 'read', paths };
  const cpu = async () => {
    const ids = [process.pid, ...(await descendants(process.pid))];
    return new Map(await Promise.all(ids.map(async (id) => [id, await cpuMs(id)] as const)));
  };
  const [before, machineBefore, startedMs] = [await cpu(), await machineCpuMs(), performance.now()];
  load.process.send(job);
  const [result] = (await once(load.process, 'message')) as [LoadResult | { error: string }];
  const [after, machineAfter, tookMs] = [await cpu(), await machineCpuMs(), performance.now() - startedMs];
  if ('error' in result) throw new Error(`the load failed: ${result.error}`);
  if (result.unexpected > 0 || result.requests === 0) {
    throw new Error(`${work} on ${side}/${tables}: ${result.unexpected} answers are not as they should be`);
  }
  const usedMs = (id: number) => (after.get(id) ?? 0) - (before.get(id) ?? 0);
  const usedUs = (id: number) => (usedMs(id) * 1000) / result.requests;
  const ownMs = [...after.keys()].map(usedMs).reduce((sum, ms) => sum + ms, 0);
  // The waiting servers are included and use no CPU; the rest is PostgreSQL. A backend that has ended is left out.
  const others = [...after.keys()].filter((id) => id !== server.pid && id !== load.pid && id !== process.pid);
  return {
    ...{ work, tables, side, connections },
    perSecond: result.requests / result.seconds,
    ...{ p50: result.p50, p99: result.p99 },
    serverCpuUs: usedUs(server.pid),
    postgresCpuUs: others.map(usedUs).reduce((sum, us) => sum + us, 0),
    loadCpuUs: usedUs(load.pid),
    otherCores: Math.max(0, machineAfter - machineBefore - ownMs) / tookMs,
  };
}
