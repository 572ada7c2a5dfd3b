import pg from 'pg';
import type { BenchContext } from '../bench-context.ts';
import { serviceModuleOf } from '../build.ts';
import { ask, type Child, startScript } from '../child.ts';
import { untilSolid } from '../ingest/catch-up.ts';
import type { ChainServerPlan } from '../ingest/chain-server.ts';
import { type DayPlan, publishedAtMs, SOLID_DEPTH } from '../ingest/day.ts';
import type { FastServicePlan } from '../ingest/fast-service.ts';
import { hearCommits } from '../ingest/live.ts';
import { createShop, type IngestShop, insertInvoices, planPayments } from '../ingest/shop.ts';
import { startChainServer } from '../ingest/start-chain-server.ts';
import { BENCH_MASTER_KEY } from '../master-key.ts';
import { addEndpoints } from '../webhooks/events.ts';

/** The roles of one process, separated by commas. */
export type Deployment = { name: string; processes: string[] };

/** A running chain, a shop that receives payments on it, a receiver of its webhooks, and the service. */
export type World = {
  shop: IngestShop;
  client: pg.Client;
  receiver: Child;
  endpointId: string;
  /** The service's processes with their roles. The process with the role `api` listens at `url`. */
  services: (Child & { roles: string })[];
  url: string;
  /** When each invoice reached each status, by `<id> <status>`. */
  committed: Map<string, number>;
  /** The block that pays each invoice, by the invoice's id. */
  numberOf: Map<string, number>;
  publishedAt(number: number): number;
  firstCounted: number;
  stop(): Promise<void>;
};

export const BLOCK_MS = 500;
/** The longest delay between a block's time and its appearance. */
const DELAY_MS = 150;
/** The number of blocks that exist when the service starts, and until its addresses were checked once. */
const [OLD_BLOCKS, WARM_BLOCKS] = [60, 40];
const [FIRST_NUMBER, BODY_COUNT] = [77_000_000, 60];
/** The service requests irreversible blocks at a limited rate, which is enough for this many payments. */
const PAY_EVERY = 4;

/** Starts a deployment on a chain that makes a full block every half second, and pays invoices for `seconds` after the warm-up. */
export async function startWorld(
  context: BenchContext,
  { name, processes }: Deployment,
  seconds: number,
): Promise<World> {
  const { command, postgres, onStart } = context;
  const shop = await createShop(postgres, name, null);
  const [receiver, { port }] = await startScript<{ port: number }>('./webhooks/receiver.ts', {});
  onStart(receiver);
  const [endpointId = ''] = await addEndpoints(shop.connection, shop.projectId, [`http://127.0.0.1:${port}/hook`]);
  const firstCounted = FIRST_NUMBER + OLD_BLOCKS + WARM_BLOCKS;
  const blocks = Math.ceil((seconds * 1000) / BLOCK_MS);
  const numbers = Array.from(
    { length: Math.floor(blocks / PAY_EVERY) },
    (_, index) => firstCounted + index * PAY_EVERY,
  );
  const payments = planPayments(shop.accounts, numbers);
  const day: DayPlan = {
    ...{ firstNumber: FIRST_NUMBER, firstTimeMs: Math.floor(Date.now() / BLOCK_MS - OLD_BLOCKS) * BLOCK_MS },
    ...{
      slotMs: BLOCK_MS,
      blockCount: OLD_BLOCKS + WARM_BLOCKS + blocks + 3 * SOLID_DEPTH,
      bodyCount: BODY_COUNT,
      payments,
    },
  };
  const chainPlan: ChainServerPlan = { day, nodes: 1, delayMs: DELAY_MS };
  const [chain, { urls }] = await startChainServer(chainPlan);
  onStart(chain);
  await ask(chain, { kind: 'live' });
  const client = new pg.Client(shop.connection);
  // The connection may end with the server; statements report their own errors.
  client.on('error', () => undefined);
  await client.connect();
  const services: World['services'] = [];
  let url = '';
  for (const roles of processes) {
    const plan: FastServicePlan = { module: serviceModuleOf(command), connection: shop.connection, blockMs: BLOCK_MS };
    const [service, ready] = await startScript<{ url: string | null }>('./ingest/fast-service.ts', {
      BENCH_SERVICE: JSON.stringify(plan),
      ...SETTINGS,
      QUITTANCE_ROLES: roles,
      QUITTANCE_DEVNET_NODES: urls.join(),
    });
    onStart(service);
    services.push({ ...service, roles });
    url = ready.url ?? url;
  }
  await untilSolid(client, FIRST_NUMBER);
  const numberOf = await insertInvoices(shop, payments);
  const committed = await hearCommits(client);
  return {
    ...{ shop, client, receiver, endpointId, services, url, committed, numberOf, firstCounted },
    publishedAt: (number) => publishedAtMs(day, DELAY_MS, number),
    stop: async () => {
      for (const service of services) await service.stop();
      await client.end();
      await chain.stop();
      await receiver.stop();
    },
  };
}

const SETTINGS = {
  // Not used, because the plan contains the connection. Without this variable, the service refuses a subset of the roles.
  DATABASE_URL: 'postgres://127.0.0.1/bench',
  QUITTANCE_MASTER_KEY: BENCH_MASTER_KEY,
  QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow',
  QUITTANCE_PORT: '0',
  QUITTANCE_METRICS_PORT: 'off',
  QUITTANCE_TRUST_PROXY: 'loopback',
  QUITTANCE_PUBLIC_URL: 'http://127.0.0.1',
  QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  QUITTANCE_RATE_LIMIT: '100000',
  QUITTANCE_RATE_BURST: '1000000',
};
