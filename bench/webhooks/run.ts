import pg from 'pg';
import { encodeId } from '../../src/core/domain/ids.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, type Child, startScript, startService } from '../child.ts';
import { createShop } from '../ingest/shop.ts';
import { cpuMs } from '../proc.ts';
import { addEndpoints, EVENT_BODY, writeEvents } from './events.ts';
import type { PostJob } from './post-loop.ts';
import type { Arrivals, Arrived } from './receiver.ts';
import { judgeWebhooks, type Round, showWebhooks, type WebhookFigures } from './report.ts';

type Plan = { rounds: number; deliveries: number; latencies: number };
const DEFAULT: Plan = { rounds: 7, deliveries: 30_000, latencies: 500 };
const QUICK: Plan = { rounds: 3, deliveries: 10_000, latencies: 300 };

/** The service's own limits for one endpoint, and for all together. */
const [PER_ENDPOINT, CONCURRENCY] = [16, 128];
const ENDPOINTS = 99;
/** Events that wait for the hanging endpoint. */
const HANGING = 300;

type Bench = {
  client: pg.Client;
  projectId: string;
  receiver: Child;
  service: Child;
  poster: Child;
  /** One endpoint, 99 more with hosts of their own, and one that never responds. */
  one: string;
  many: string[];
  hanging: string;
  urls: { one: string[]; many: string[] };
};

/**
 * Measures deliveries per second compared with a bare loop that signs and posts, the same with a hanging endpoint, and the time to the
 * first attempt.
 */
export async function runWebhooks(context: BenchContext): Promise<BenchResult> {
  const plan = context.flags.quick ? QUICK : DEFAULT;
  const bench = await start(context);
  try {
    context.onProgress('warming up');
    await deliver(bench, [bench.one], 2000);
    await post(bench, bench.urls.one, 2000, PER_ENDPOINT);
    const rounds: Round[] = [];
    for (let number = 1; number <= plan.rounds; number++) {
      rounds.push(await runRound(bench, plan, number));
      context.onProgress(`round ${number} of ${plan.rounds}: ${Math.round(rounds.at(-1)?.one ?? 0)} deliveries/s`);
    }
    const latencies = await measureLatencies(bench, plan.latencies);
    const figures: WebhookFigures = { rounds, latencies };
    const targets = judgeWebhooks(figures);
    return { markdown: showWebhooks(figures), targets, record: { plan, ...figures } };
  } finally {
    await bench.client.end();
  }
}

async function start({ command, postgres, onStart }: BenchContext): Promise<Bench> {
  const shop = await createShop(postgres, 'webhooks', null);
  const [receiver, { port }] = await startScript<{ port: number }>('./webhooks/receiver.ts', {});
  onStart(receiver);
  const [poster] = await startScript('./webhooks/post-loop.ts', {});
  onStart(poster);
  const urls = Array.from({ length: ENDPOINTS }, (_, index) => `http://127.0.1.${index + 1}:${port}/hook`);
  const one = `http://127.0.0.1:${port}/hook`;
  const ids = await addEndpoints(shop.connection, shop.projectId, [one, ...urls, `http://127.0.2.1:${port}/hang`]);
  const service = await startService(command, shop.connection, { env: { QUITTANCE_ROLES: 'webhooks' } });
  onStart(service);
  const client = new pg.Client(shop.connection);
  await client.connect();
  const endpoints = { one: ids[0] ?? '', many: ids.slice(1, -1), hanging: ids.at(-1) ?? '' };
  return {
    client,
    projectId: shop.projectId,
    receiver,
    service,
    poster,
    ...endpoints,
    urls: { one: [one], many: urls },
  };
}

/** Measures each figure next to its reference, in reverse order in every other round. */
async function runRound(bench: Bench, plan: Plan, number: number): Promise<Round> {
  const { one, many, urls } = bench;
  const events = Math.ceil(plan.deliveries / ENDPOINTS);
  const round = { one: 0, bareOne: 0, many: 0, bareMany: 0, beside: 0, cpuUs: 0 };
  const steps = [
    async () => {
      const before = await cpuMs(bench.service.pid);
      round.one = await deliver(bench, [one], plan.deliveries);
      round.cpuUs = (1000 * ((await cpuMs(bench.service.pid)) - before)) / plan.deliveries;
    },
    async () => {
      round.bareOne = await post(bench, urls.one, plan.deliveries, PER_ENDPOINT);
    },
    async () => {
      round.many = await deliver(bench, many, events);
    },
    async () => {
      round.beside = await deliverBesideHanging(bench, events);
    },
    async () => {
      round.bareMany = await post(bench, urls.many, plan.deliveries, CONCURRENCY);
    },
  ];
  for (const step of number % 2 === 1 ? steps : steps.toReversed()) await step();
  return round;
}

/** Returns the deliveries per second, from the first arrival to the last. */
async function deliver(bench: Bench, endpointIds: readonly string[], events: number): Promise<number> {
  const { client, receiver, projectId } = bench;
  await client.query('vacuum analyze deliveries, delivery_attempts, events');
  await ask(receiver, { kind: 'reset' });
  await writeEvents(client, projectId, endpointIds, events);
  const count = events * endpointIds.filter((id) => id !== bench.hanging).length;
  const { firstMs, lastMs } = await ask<Arrived>(receiver, { kind: 'wait', count });
  await untilRecorded(bench);
  return ((count - 1) * 1000) / (lastMs - firstMs);
}

/** The hanging endpoint counts as healthy at first, and has more events than attempts are possible. */
async function deliverBesideHanging(bench: Bench, events: number): Promise<number> {
  const { client, projectId, hanging, many } = bench;
  await client.query('update webhook_endpoints set failing_since = null, consecutive_failures = 0, open_until = null');
  await writeEvents(client, projectId, [hanging], HANGING);
  const perSecond = await deliver(bench, many, events);
  await client.query("update deliveries set status = 'dead' where endpoint_id = $1", [hanging]);
  return perSecond;
}

/** The work of the last deliveries must not affect the next measurement. */
async function untilRecorded({ client, hanging }: Bench): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ count: string }>(
      "select count(*) from deliveries where status = 'pending' and endpoint_id <> $1",
      [hanging],
    );
    if (rows[0]?.count === '0') return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function post({ poster, receiver }: Bench, urls: string[], count: number, concurrency: number): Promise<number> {
  await ask(receiver, { kind: 'reset' });
  const job: PostJob = { urls, count, concurrency, body: EVENT_BODY };
  const result = await ask<{ perSecond?: number; error?: string }>(poster, job);
  if (result.perSecond === undefined) throw new Error(result.error);
  return result.perSecond;
}

/** Returns the milliseconds from the commit of an event to its first arrival, one event at a time. */
async function measureLatencies({ client, receiver, projectId, one }: Bench, count: number): Promise<number[]> {
  await ask(receiver, { kind: 'reset' });
  const committed = new Map<string, number>();
  for (let number = 1; number <= count; number++) {
    const [id = ''] = await writeEvents(client, projectId, [one], 1);
    committed.set(encodeId('evt', id), performance.timeOrigin + performance.now());
    await ask<Arrived>(receiver, { kind: 'wait', count: number });
    await new Promise((resolve) => setTimeout(resolve, 10 + (number % 7)));
  }
  const { arrivals } = await ask<Arrivals>(receiver, { kind: 'arrivals' });
  return arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN));
}
