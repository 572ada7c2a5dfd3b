import type { Watching } from '../../src/payments/watching.ts';
import type { Database } from '../../src/store/db/database.ts';
import type { PostgresConnection } from '../../src/store/embedded/connection.ts';
import { onServer } from '../databases.ts';
import { createMany } from './create.ts';
import { ADDRESS_COUNT, fillHistory, PRICE_COUNT, priceAt } from './fill.ts';
import { anyPayables, PAID_PER_BATCH, type Payable, payAll, payablesOf, startWatching } from './match.ts';
import { createDatabase, createGrowthShop, fillQuickly, type GrowthShop } from './shop.ts';
import { type Comparison, compare, inTurn } from './spread.ts';

const TURNS = 8;
const NEW = 'match 20 blocks that pay new invoices';
/** The worst case: a shop is paid for what it sold a moment ago. */
export const OLD = 'match 20 blocks that pay invoices of any age';

export type HistoryPlan = {
  few: number;
  many: number;
  rounds: number;
  creates: number;
  connections: number[];
  batches: number;
};

export type History = { comparisons: Comparison[]; megabytes: { few: number; many: number }; fillSeconds: number };

type Side = { db: Database; connection: PostgresConnection; shop: GrowthShop; watching: Watching; old: Payable[] };

/**
 * Creating and matching with many invoices in the tables against few, in two databases of one server, in turn. Payments go to
 * invoices made a moment ago, as they do in a shop, and to old ones from all over the table, which is the worst case.
 */
export async function measureHistory(
  server: PostgresConnection,
  plan: HistoryPlan,
  onProgress: (text: string) => void,
): Promise<History> {
  const startedAt = Date.now();
  const few = await makeSide(server, 'growth_few', plan.few, plan, onProgress);
  const many = await makeSide(server, 'growth_many', plan.many, plan, onProgress);
  const fillSeconds = Math.round((Date.now() - startedAt) / 1000);
  try {
    const rounds = new Map<string, [number, number][]>();
    for (let round = 0; round <= plan.rounds; round++) {
      onProgress(round === 0 ? 'warming up' : `round ${round} of ${plan.rounds}`);
      const figures = await measureRound([few, many], plan);
      if (round === 0) continue;
      for (const [name, both] of figures) rounds.set(name, [...(rounds.get(name) ?? []), both]);
    }
    const comparisons = [...rounds].map(([name, values]) => compare(name, values));
    return { comparisons, megabytes: { few: await megabytesOf(few), many: await megabytesOf(many) }, fillSeconds };
  } finally {
    await few.db.close();
    await many.db.close();
  }
}

async function makeSide(
  server: PostgresConnection,
  name: string,
  count: number,
  plan: HistoryPlan,
  onProgress: (text: string) => void,
): Promise<Side> {
  onProgress(`filling ${count} invoices`);
  const { db, connection } = await createDatabase(server, name);
  const shop = await createGrowthShop(db, 'tail', ADDRESS_COUNT);
  await fillQuickly(connection, (client) => fillHistory(client, shop, count, onProgress));
  const wanted = (plan.rounds + 1) * plan.batches * PAID_PER_BATCH;
  const old = await onServer(connection, (client) => anyPayables(client, shop, wanted));
  if (old.length < wanted) throw new Error(`${wanted} unpaid invoices are needed, and there are ${old.length}`);
  return { db, connection, shop, watching: await startWatching(db), old };
}

/** Milliseconds of one creation, and of one batch of 20 blocks, by what was measured. */
async function measureRound(sides: [Side, Side], plan: HistoryPlan): Promise<Map<string, [number, number]>> {
  const figures = new Map<string, [number, number]>();
  const created: [string[], string[]] = [[], []];
  for (const connections of plan.connections) {
    const perTurn = plan.creates / TURNS;
    const create = async (side: 0 | 1) => {
      const prices = Array.from({ length: perTurn }, () => priceAt(Math.floor(Math.random() * PRICE_COUNT)));
      const { ids, msEach } = await createMany(sides[side].db, sides[side].shop, prices, connections);
      created[side].push(...ids);
      return msEach;
    };
    figures.set(`create, ${connections} at once`, await inTurn(TURNS, create));
  }
  const pay = async (payables: [Payable[], Payable[]]) =>
    inTurn(plan.batches, (side) => payAll(sides[side].watching, payables[side].splice(0, PAID_PER_BATCH)));
  const count = plan.batches * PAID_PER_BATCH;
  const [ofFew, ofMany] = [
    await findRecent(sides[0], created[0], count),
    await findRecent(sides[1], created[1], count),
  ];
  figures.set(NEW, await pay([ofFew, ofMany]));
  figures.set(OLD, await pay([sides[0].old, sides[1].old]));
  return figures;
}

function findRecent({ connection, shop }: Side, ids: string[], count: number): Promise<Payable[]> {
  return onServer(connection, (client) => payablesOf(client, shop, ids.slice(-count)));
}

async function megabytesOf({ connection }: Side): Promise<number> {
  const { rows } = await onServer(connection, (client) =>
    client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes'),
  );
  return Math.round(Number(rows[0]?.bytes ?? 0) / 1e6);
}
