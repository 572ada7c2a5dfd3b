import type { MicroUsdt } from '../../src/core/domain/money.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { createMany } from './create.ts';
import { fillExact, fillWords, priceAt } from './fill.ts';
import { createDatabase, createGrowthShop, fillQuickly, type GrowthShop } from './shop.ts';
import { type Comparison, compare, inTurn } from './spread.ts';

export type OccupancyPlan = { rounds: number; creates: number; connections: number[] };

const TURNS = 8;

/** 95 % of a cent's 900 code words. */
const NEARLY_ALL = 855;
const ALL = 900;
/**
 * The numbers of full addresses, out of 100, in turn. Creation stores a hint at every 8th address, so one in eight creations costs more.
 */
const NEARLY_ALL_EXACT = [92, 93, 94, 95, 96, 97, 98, 99];

/** Two projects with the same number of addresses: one without invoices, and one where 95 % of the amounts are taken for each price. */
type Pool = { name: string; prices: MicroUsdt[]; empty: GrowthShop; taken: GrowthShop };

/**
 * Measures the cost of a creation if 95 % of the possible amounts are taken, compared with an empty pool. All projects share one database,
 * so that tables and indexes have the same size. Each creation uses up one more amount, so there are many prices.
 */
export async function measureOccupancy(
  server: PostgresConnection,
  plan: OccupancyPlan,
  onProgress: (text: string) => void,
): Promise<Comparison[]> {
  const { db, connection } = await createDatabase(server, 'growth_occupancy');
  try {
    onProgress('filling pools to 95 %');
    const perTurn = plan.creates / TURNS;
    const perConnections = (plan.rounds + 1) * plan.creates;
    const pools: Pool[] = [];
    const add = async (name: string, policy: 'tail' | 'exact', addressCount: number, priceCount: number) => {
      const [empty, taken] = [
        await createGrowthShop(db, policy, addressCount),
        await createGrowthShop(db, policy, addressCount),
      ];
      const prices = Array.from({ length: priceCount }, (_, index) => priceAt(index));
      pools.push({ name, prices, empty, taken });
      return { taken, prices };
    };
    const one = await add('tail, 1 address with 855 of 900 words taken', 'tail', 1, 400);
    const twenty = await add('tail, 20 addresses of which 19 are full', 'tail', 20, 30);
    const exactPrices = perConnections * plan.connections.length;
    const hundred = await add('exact, 100 addresses of which 92 to 99 are taken', 'exact', 100, exactPrices);
    await fillQuickly(connection, async (client) => {
      await fillWords(client, one.taken, one.taken.addressIds, one.prices, NEARLY_ALL);
      await fillWords(client, twenty.taken, twenty.taken.addressIds.slice(0, 19), twenty.prices, ALL);
      await fillExact(client, hundred.taken, hundred.taken.addressIds, NEARLY_ALL_EXACT, hundred.prices);
    });
    const comparisons: Comparison[] = [];
    for (const pool of pools) {
      // The first creation of a price finds the full addresses and stores that as a hint.
      if (pool.taken.policy === 'tail') await createMany(db, pool.taken, pool.prices, 1);
      let used = 0;
      for (const connections of plan.connections) {
        onProgress(`${pool.name}, ${connections} at once`);
        const rounds: [number, number][] = [];
        for (let round = 0; round <= plan.rounds; round++) {
          const figures = await inTurn(TURNS, async (side, turn) => {
            const first = used + turn * perTurn;
            const prices = Array.from({ length: perTurn }, (_, at) => priceOf(pool, first + at));
            const shop = side === 0 ? pool.empty : pool.taken;
            return (await createMany(db, shop, prices, connections)).msEach;
          });
          used += plan.creates;
          // Round 0 warms up.
          if (round > 0) rounds.push(figures);
        }
        comparisons.push(compare(`create, ${pool.name}, ${connections} at once`, rounds));
      }
    }
    return comparisons;
  } finally {
    await db.close();
  }
}

function priceOf({ prices }: Pool, index: number): MicroUsdt {
  return prices[index % prices.length] as MicroUsdt;
}
