import type { Client } from 'pg';
import type { Watching } from '../../src/core/payments/watching.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { onServer } from '../databases.ts';
import { createMany } from './create.ts';
import { addressCount, fillHistory, PRICE_COUNT, priceAt } from './fill.ts';
import { anyPayables, PAID_PER_BATCH, type Payable, payAll, payablesOf, startWatching } from './match.ts';
import { addCost, type Cost, meter, NO_COST } from './meter.ts';
import { createDatabase, createGrowthShop, fillQuickly, type GrowthShop, openPool } from './shop.ts';
import { type Comparison, compare, inTurn } from './spread.ts';

const TURNS = 8;
const NEW = 'match 20 blocks that pay new invoices';
/** The worst case, because a shop is usually paid for recent orders. */
export const OLD = 'match 20 blocks that pay invoices of any age';

export type HistoryPlan = {
  few: number;
  many: number;
  rounds: number;
  creates: number;
  connections: number[];
  batches: number;
  /** Measures again with only PostgreSQL's own 128 MB as a cache, so the tables are larger than memory. */
  isUncachedToo: boolean;
};

/** `costs` are those of each operation on both sides, by the name of the comparison. */
export type Measured = { comparisons: Comparison[]; costs: Record<string, [Cost, Cost]> };
export type Megabytes = { all: number; indexes: number };
export type History = {
  cached: Measured;
  uncached: Measured | null;
  megabytes: { few: Megabytes; many: Megabytes };
  fillSeconds: number;
};

type Filled = { name: string; shop: GrowthShop; watching: Watching; old: Payable[] };
type Side = Filled & { db: Database; connection: PostgresConnection };

export type BenchServer = { postgres: PostgresConnection; restart(): Promise<PostgresConnection> };

/**
 * Compares creating and matching with many and with few invoices in the tables, alternating between two databases of one server. Payments
 * go to recent invoices, as in a shop, and to old ones from all parts of the table, which is the worst case.
 */
export async function measureHistory(
  { postgres, restart }: BenchServer,
  plan: HistoryPlan,
  onProgress: (text: string) => void,
): Promise<History> {
  const startedAt = Date.now();
  const few = await fillSide(postgres, 'growth_few', plan.few, plan, onProgress);
  const many = await fillSide(postgres, 'growth_many', plan.many, plan, onProgress);
  const fillSeconds = Math.round((Date.now() - startedAt) / 1000);
  const cached = await measureSides(postgres, [few, many], plan, onProgress);
  const sizeOf = ({ name }: Filled) => onServer({ ...postgres, database: name }, megabytesOf);
  const megabytes = { few: await sizeOf(few), many: await sizeOf(many) };
  if (!plan.isUncachedToo) return { cached, uncached: null, megabytes, fillSeconds };
  onProgress('again, without the cache of the system');
  await onServer(postgres, (client) => client.query("alter system set debug_io_direct = 'data'"));
  const uncached = await measureSides(await restart(), [few, many], plan, onProgress);
  return { cached, uncached, megabytes, fillSeconds };
}

async function fillSide(
  server: PostgresConnection,
  name: string,
  count: number,
  plan: HistoryPlan,
  onProgress: (text: string) => void,
): Promise<Filled> {
  onProgress(`filling ${count} invoices`);
  const { db, connection } = await createDatabase(server, name);
  try {
    const shop = await createGrowthShop(db, 'tail', addressCount(count));
    await fillQuickly(connection, (client) => fillHistory(client, shop, count, onProgress), onProgress);
    const wanted = (plan.isUncachedToo ? 2 : 1) * (plan.rounds + 1) * plan.batches * PAID_PER_BATCH;
    const old = await onServer(connection, (client) => anyPayables(client, shop, wanted));
    if (old.length < wanted) throw new Error(`${wanted} unpaid invoices are needed, and there are ${old.length}`);
    return { name, shop, watching: await startWatching(db), old };
  } finally {
    await db.close();
  }
}

async function measureSides(
  server: PostgresConnection,
  filled: [Filled, Filled],
  plan: HistoryPlan,
  onProgress: (text: string) => void,
): Promise<Measured> {
  const open = (one: Filled): Side => {
    const connection = { ...server, database: one.name };
    const db = openPool(connection);
    return { ...one, db, connection, watching: { ...one.watching, db } };
  };
  const sides: [Side, Side] = [open(filled[0]), open(filled[1])];
  try {
    const rounds = new Map<string, [number, number][]>();
    const costs = new Map<string, [Cost, Cost]>();
    for (let round = 0; round <= plan.rounds; round++) {
      onProgress(round === 0 ? 'warming up' : `round ${round} of ${plan.rounds}`);
      const figures = await onServer(server, (client) => measureRound(client, sides, plan));
      if (round === 0) continue;
      for (const { name, both, cost } of figures) {
        rounds.set(name, [...(rounds.get(name) ?? []), both]);
        const [few, many] = costs.get(name) ?? [NO_COST, NO_COST];
        costs.set(name, [addCost(few, cost[0], plan.rounds), addCost(many, cost[1], plan.rounds)]);
      }
    }
    const comparisons = [...rounds].map(([name, values]) => compare(name, values));
    return { comparisons, costs: Object.fromEntries(costs) };
  } finally {
    for (const { db } of sides) await db.close();
  }
}

/** Milliseconds of one creation and of one batch of 20 blocks, on both sides, and the cost of each. */
type Figure = { name: string; both: [number, number]; cost: [Cost, Cost] };

async function measureRound(client: Client, sides: [Side, Side], plan: HistoryPlan): Promise<Figure[]> {
  const figures: Figure[] = [];
  const created: [string[], string[]] = [[], []];
  const measure = async (
    name: string,
    turns: number,
    each: number,
    run: (side: Side, at: 0 | 1) => Promise<number>,
  ) => {
    const cost: [Cost, Cost] = [NO_COST, NO_COST];
    const both = await inTurn(turns, async (at) => {
      const metered = await meter(client, () => run(sides[at], at));
      cost[at] = addCost(cost[at], metered.cost, turns * each);
      return metered.result;
    });
    figures.push({ name, both, cost });
  };
  for (const connections of plan.connections) {
    const perTurn = plan.creates / TURNS;
    await measure(`create, ${connections} at once`, TURNS, perTurn, async ({ db, shop }, at) => {
      const prices = Array.from({ length: perTurn }, () => priceAt(Math.floor(Math.random() * PRICE_COUNT)));
      const { ids, msEach } = await createMany(db, shop, prices, connections);
      created[at].push(...ids);
      return msEach;
    });
  }
  const recent: [Payable[], Payable[]] = [[], []];
  for (const at of [0, 1] as const) {
    recent[at] = await findRecent(sides[at], created[at], plan.batches * PAID_PER_BATCH);
  }
  const pay = (name: string, payables: (at: 0 | 1) => Payable[]) =>
    measure(name, plan.batches, 1, ({ watching }, at) => payAll(watching, payables(at).splice(0, PAID_PER_BATCH)));
  await pay(NEW, (at) => recent[at]);
  await pay(OLD, (at) => sides[at].old);
  return figures;
}

function findRecent({ connection, shop }: Side, ids: string[], count: number): Promise<Payable[]> {
  return onServer(connection, (client) => payablesOf(client, shop, ids.slice(-count)));
}

async function megabytesOf(client: Client): Promise<Megabytes> {
  const { rows } = await client.query<{ all: string; indexes: string }>(
    `select pg_database_size(current_database()) as all, (select sum(pg_indexes_size(oid)) from pg_class where relkind = 'r') as indexes`,
  );
  const mega = (bytes: string | undefined) => Math.round(Number(bytes ?? 0) / 1e6);
  return { all: mega(rows[0]?.all), indexes: mega(rows[0]?.indexes) };
}
