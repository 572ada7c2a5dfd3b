import { setTimeout as delay } from 'node:timers/promises';
import { ask, type Child, type ServiceServer } from '../child.ts';
import { cpuMs } from '../proc.ts';
import { type BenchChain, changeStatus } from './chain.ts';
import type { Heard, HeardAnswer, ReadersOrder } from './readers.ts';
import type { Idle } from './report.ts';

/** The open pages. `tokens` are all links, in no particular order. */
export type Bench = { chain: BenchChain; service: ServiceServer; readers: Child; tokens: string[] };

/** After this time, pages count as blind (`BLIND_AFTER_MS`). */
const BLIND_MS = 60_000;
const WAIT_LIMIT_MS = 120_000;

/** Measures the cost of open pages while blocks arrive and nothing else happens. */
export async function measureIdle({ service, readers, chain }: Bench, seconds: number): Promise<Idle> {
  await heardOf(readers);
  const [metricsBefore, cpuBefore] = [await readMetrics(service), await cpuMs(service.pid)];
  const before = await countTransactions(chain);
  await delay(seconds * 1000);
  const after = await countTransactions(chain);
  const [metrics, cpu] = [await readMetrics(service), await cpuMs(service.pid)];
  const { heard, bytes } = await heardOf(readers);
  const perSecond = (name: string) => (metrics(name) - metricsBefore(name)) / seconds;
  return {
    queries: {
      invoices: perSecond('quittance_live_page_queries_total{kind="invoices"}'),
      heads: perSecond('quittance_live_page_queries_total{kind="heads"}'),
    },
    transactions: (after - before) / seconds,
    cpuShare: (cpu - cpuBefore) / (seconds * 1000),
    messages: heard.length / seconds,
    bytes: bytes / seconds,
    lagP99Ms: metrics('nodejs_eventloop_lag_p99_seconds') * 1000,
  };
}

/** Counts every commit in the database, including this benchmark's own blocks and queries. */
async function countTransactions({ client }: BenchChain): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    'select xact_commit as count from pg_stat_database where datname = current_database()',
  );
  return Number(rows[0]?.count);
}

export async function countListening({ client }: BenchChain): Promise<number> {
  const { rows } = await client.query<{ count: string }>(
    "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen %'",
  );
  return Number(rows[0]?.count);
}

/** Measures milliseconds from sending the statement, including its commit, to the reader, for one change at a time. */
export async function measureChanges({ chain, readers }: Bench, count: number): Promise<number[]> {
  const latencies: number[] = [];
  for (let i = 0; i < count; i++) {
    const { id, token } = chain.waiting[(i * 7919) % chain.waiting.length] ?? { id: '', token: '' };
    await heardOf(readers);
    const sentAt = performance.timeOrigin + performance.now();
    await changeStatus(chain.client, [id], 'EXPIRED');
    const [first] = await untilHeard(readers, (heard) => heard.filter((one) => one.token === token), 1);
    latencies.push((first?.at ?? Number.NaN) - sentAt);
    await delay(10 + (i % 7));
  }
  return latencies;
}

/** Measures milliseconds until the reader has received the last of the changes that one transaction made. */
export async function measureBurst({ chain, readers }: Bench): Promise<number> {
  const changed = chain.waiting.slice(0, chain.confirming.length);
  const tokens = new Set(changed.map(({ token }) => token));
  await heardOf(readers);
  const sentAt = performance.timeOrigin + performance.now();
  await changeStatus(
    chain.client,
    changed.map(({ id }) => id),
    'EXPIRED',
  );
  const heard = await untilHeard(readers, (all) => all.filter(({ token }) => tokens.has(token)), tokens.size);
  return Math.max(...heard.map(({ at }) => at)) - sentAt;
}

/**
 * The newest block is 50 s old when it arrives. Measures milliseconds from the moment when it's too old to the moment when the last page
 * says so.
 */
export async function measureBlind({ chain, readers, tokens }: Bench): Promise<number> {
  const blockTime = Date.now() - BLIND_MS + 10_000;
  await chain.client.query('delete from head_blocks where block_time > $1', [new Date(blockTime)]);
  await chain.mine(blockTime);
  await heardOf(readers);
  const heard = await untilHeard(readers, (all) => all.filter(({ isBlind }) => isBlind), tokens.length);
  return Math.max(...heard.map(({ at }) => at)) - (blockTime + BLIND_MS);
}

async function untilHeard(readers: Child, pick: (heard: Heard[]) => Heard[], count: number): Promise<Heard[]> {
  const picked: Heard[] = [];
  const deadline = performance.now() + WAIT_LIMIT_MS;
  while (picked.length < count) {
    if (performance.now() > deadline) throw new Error(`only ${picked.length} of ${count} pages were told`);
    picked.push(...pick((await heardOf(readers)).heard));
    await delay(5);
  }
  return picked;
}

function heardOf(readers: Child): Promise<HeardAnswer> {
  return order<HeardAnswer>(readers, { kind: 'heard' });
}

export async function order<Answer>(readers: Child, message: ReadersOrder): Promise<Answer> {
  const answer = await ask<Answer & { error?: string }>(readers, message);
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

async function readMetrics({ metricsUrl }: ServiceServer): Promise<(name: string) => number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  return (name) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length) ?? 0,
    );
}
