import type { PostgresConnection } from '../../src/store/embedded/connection.ts';
import type { BenchResult } from '../bench-context.ts';
import { onServer } from '../databases.ts';
import { table } from '../targets.ts';
import { type HistoryPlan, measureHistory, OLD } from './history.ts';
import { measureOccupancy, type OccupancyPlan } from './occupancy.ts';
import type { Comparison, Spread } from './spread.ts';

type Plan = { occupancy: OccupancyPlan; history: HistoryPlan };

const FULL: Plan = {
  occupancy: { rounds: 9, creates: 400, connections: [1, 16] },
  history: { few: 10_000, many: 10_000_000, rounds: 9, creates: 400, connections: [1, 16], batches: 8 },
};
const QUICK: Plan = {
  occupancy: { rounds: 3, creates: 200, connections: [1, 16] },
  history: { few: 10_000, many: 100_000, rounds: 3, creates: 400, connections: [1, 16], batches: 8 },
};

const MOST = { occupancy: 2, history: 1.3 };
const SETTINGS = [
  'shared_buffers',
  'max_wal_size',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'effective_cache_size',
];

/** Whether creating gets dearer as a pool fills up, and creating and matching as the ledger grows. */
export async function runGrowth(options: {
  postgres: PostgresConnection;
  isQuick: boolean;
  onProgress(text: string): void;
}): Promise<BenchResult> {
  const { postgres, isQuick, onProgress } = options;
  const plan = isQuick ? QUICK : FULL;
  const occupancy = await measureOccupancy(postgres, plan.occupancy, onProgress);
  const history = await measureHistory(postgres, plan.history, onProgress);
  const settings = await onServer(postgres, async (client) => {
    const { rows } = await client.query<{ name: string; value: string }>(
      'select name, current_setting(name) as value from pg_settings where name = any ($1)',
      [SETTINGS],
    );
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  });
  const { few, many } = history.megabytes;
  const markdown = [
    show(['empty', '95 % taken'], occupancy, MOST.occupancy),
    show([`${plan.history.few} invoices`, `${plan.history.many} invoices`], history.comparisons, MOST.history),
    `Databases: ${few} MB and ${many} MB, filled in ${history.fillSeconds} s. ${JSON.stringify(settings)}`,
  ].join('\n\n');
  return { markdown, record: { plan, settings, occupancy, history } };
}

function show(sides: [string, string], comparisons: Comparison[], most: number): string {
  const rows = comparisons.map(({ name, first, second, ratio }) => [
    ...[name, showMs(first), showMs(second), showSpread(ratio)],
    ...(name === OLD ? ['–', '–'] : [`≤ ${most}`, ratio.median <= most ? 'yes' : 'NO']),
  ]);
  return table(['median ms each', ...sides, 'ratio (lowest–highest)', 'target', 'reached'], rows);
}

function showMs({ median }: Spread): string {
  return median.toFixed(median < 10 ? 3 : 1);
}

function showSpread({ median, lowest, highest }: Spread): string {
  return `${median.toFixed(2)} (${lowest.toFixed(2)}–${highest.toFixed(2)})`;
}
