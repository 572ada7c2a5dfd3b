import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { encodeId } from '../../src/core/domain/ids.ts';
import type { BenchContext } from '../bench-context.ts';
import { serviceModuleOf } from '../build.ts';
import { ask, startScript } from '../child.ts';
import { BENCH_MASTER_KEY } from '../master-key.ts';
import { sum, untilSolid } from './catch-up.ts';
import type { ChainCounts, ChainServerPlan } from './chain-server.ts';
import { type DayPlan, publishedAtMs, SOLID_DEPTH } from './day.ts';
import type { FastServicePlan } from './fast-service.ts';
import { createShop, insertInvoices, planPayments } from './shop.ts';
import { startChainServer } from './start-chain-server.ts';

/** The milliseconds for each payment, from when the block was available, and from when a node first reported it to the service. */
type Latency = { sincePublished: number[]; sinceShown: number[] };

/**
 * `requests` are those of each node per block, and `paths` are those of the first node, by path. `webhook` is the time from PAID to the
 * attempt.
 */
export type Live = {
  nodes: number;
  blocks: number;
  payEvery: number;
  requests: number[];
  paths: Record<string, number>;
  confirming: Latency;
  paid: Latency;
  webhook: number[];
};

const BLOCK_MS = 1000;
/** The longest delay between a block's time and its appearance, as if it travelled through the network. */
const DELAY_MS = 350;
/**
 * The numbers of blocks that exist when the service starts, of those that it follows until its addresses were checked once, and of those
 * after the last counted one.
 */
const [OLD_BLOCKS, WARM_BLOCKS, LATE_BLOCKS] = [60, 45, 40];
const FIRST_NUMBER = 77_000_000;
/** After the last payment is irreversible, its webhook may take this long. */
const LATE_MS = 10_000;

/**
 * Follows a chain that makes a full block every second. A trigger in PostgreSQL notifies the benchmark of commits. A notification is sent
 * with the commit and takes about a millisecond, which is included.
 */
export async function measureLive(
  options: BenchContext & { nodes: number; blocks: number; payEvery: number; name: string; bodyCount: number },
): Promise<Live> {
  const { nodes, blocks, payEvery, command, onStart } = options;
  const webhooks = await startReceiver();
  const shop = await createShop(options.postgres, options.name, webhooks.url);
  const firstTimeMs = Math.floor(Date.now() / BLOCK_MS - OLD_BLOCKS) * BLOCK_MS;
  const firstCounted = FIRST_NUMBER + OLD_BLOCKS + WARM_BLOCKS;
  const numbers = Array.from({ length: Math.floor(blocks / payEvery) }, (_, index) => firstCounted + index * payEvery);
  const payments = planPayments(shop.accounts, numbers);
  const blockCount = OLD_BLOCKS + WARM_BLOCKS + blocks + LATE_BLOCKS;
  const common = { firstNumber: FIRST_NUMBER, firstTimeMs, slotMs: BLOCK_MS };
  const day: DayPlan = { ...common, blockCount, bodyCount: options.bodyCount, payments };
  const chainPlan: ChainServerPlan = { day, nodes, delayMs: DELAY_MS, isWithoutLogs: options.flags['without-logs'] };
  const [chain, { urls }] = await startChainServer(chainPlan);
  onStart(chain);
  await ask(chain, { kind: 'live' });
  const client = new pg.Client(shop.connection);
  await client.connect();
  try {
    const servicePlan: FastServicePlan = {
      module: serviceModuleOf(command),
      connection: shop.connection,
      blockMs: BLOCK_MS,
    };
    const [service] = await startScript('./ingest/fast-service.ts', {
      BENCH_SERVICE: JSON.stringify(servicePlan),
      // Not used, because the plan contains the connection. Without this variable, the service refuses a subset of the roles.
      DATABASE_URL: 'postgres://127.0.0.1/bench',
      QUITTANCE_MASTER_KEY: BENCH_MASTER_KEY,
      QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
      QUITTANCE_ROLES: 'watcher,webhooks',
      QUITTANCE_METRICS_PORT: 'off',
      QUITTANCE_PUBLIC_URL: 'http://127.0.0.1',
      QUITTANCE_DEVNET_NODES: urls.join(),
      QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
    });
    onStart(service);
    await untilSolid(client, FIRST_NUMBER);
    const numberOf = await insertInvoices(shop, payments);
    const committed = await hearCommits(client);
    const timeOf = (number: number) => publishedAtMs(day, DELAY_MS, number);
    await delay(Math.max(0, timeOf(firstCounted) - BLOCK_MS / 2 - Date.now()));
    await ask(chain, { kind: 'counts' });
    await delay(Math.max(0, timeOf(firstCounted + blocks) - BLOCK_MS / 2 - Date.now()));
    const { requests } = await ask<ChainCounts>(chain, { kind: 'counts' });
    const lastPaid = timeOf((numbers.at(-1) ?? firstCounted) + SOLID_DEPTH) + LATE_MS;
    while (Date.now() < lastPaid && webhooks.paidAt.size < payments.length) await delay(BLOCK_MS / 4);
    const { shownAt } = await ask<ChainCounts>(chain, { kind: 'counts' });
    await service.stop();
    const shown = new Map(shownAt);
    const latency = (status: string, depth: number): Latency => {
      const of = [...numberOf].map(
        ([id, number]) => [committed.get(`${id} ${status}`) ?? NaN, number + depth] as const,
      );
      if (of.some(([at]) => Number.isNaN(at))) throw new Error(`not every invoice was ${status}`);
      return {
        sincePublished: of.map(([at, number]) => at - timeOf(number)),
        sinceShown: of.map(([at, number]) => at - (shown.get(number) ?? NaN)),
      };
    };
    const paths = Object.entries(requests[0] ?? {}).map(([path, count]) => [path, count / blocks]);
    return {
      ...{ nodes, blocks, payEvery, paths: Object.fromEntries(paths) },
      requests: requests.map((of) => sum(of) / blocks),
      confirming: latency('CONFIRMING', 0),
      paid: latency('PAID', SOLID_DEPTH),
      webhook: [...numberOf.keys()].map(
        (id) => (webhooks.paidAt.get(encodeId('inv', id)) ?? NaN) - (committed.get(`${id} PAID`) ?? NaN),
      ),
    };
  } finally {
    await client.end();
    await chain.stop();
    webhooks.stop();
  }
}

/** Returns when each invoice reached each status, by `<id> <status>`, in milliseconds of the clock. */
export async function hearCommits(client: pg.Client): Promise<Map<string, number>> {
  const committed = new Map<string, number>();
  client.on('notification', ({ payload = '' }) => {
    if (!committed.has(payload)) committed.set(payload, Date.now());
  });
  await client.query(`
    create function bench_tell() returns trigger language plpgsql as $$
    begin perform pg_notify('bench', new.id || ' ' || new.status); return null; end $$;
    create trigger bench_tell after update on invoices for each row when (old.status <> new.status) execute function bench_tell();
    listen bench`);
  return committed;
}

/** Receives webhooks, and records when the first attempt for each invoice's `invoice.paid` arrived. */
async function startReceiver(): Promise<{ url: string; paidAt: Map<string, number>; stop(): void }> {
  const paidAt = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const at = Date.now();
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const event = JSON.parse(Buffer.concat(chunks).toString()) as { type: string; data: { invoiceId: string } };
    if (event.type === 'invoice.paid' && !paidAt.has(event.data.invoiceId)) paidAt.set(event.data.invoiceId, at);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    paidAt,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
