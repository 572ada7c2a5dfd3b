import type { BenchResult } from '../bench-context.ts';
import { onServer } from '../databases.ts';
import { table } from '../targets.ts';
import {
  type BenchServer,
  type History,
  type HistoryPlan,
  type Measured,
  type Megabytes,
  measureHistory,
  OLD,
} from './history.ts';
import { measureOccupancy, type OccupancyPlan } from './occupancy.ts';
import type { Comparison, Spread } from './spread.ts';

type Plan = { occupancy: OccupancyPlan; history: HistoryPlan };

const EACH = { few: 10_000, creates: 400, connections: [1, 16], batches: 8 };
const FULL: Plan = {
  occupancy: { rounds: 9, creates: 400, connections: [1, 16] },
  history: { ...EACH, many: 10_000_000, rounds: 9, isUncachedToo: false },
};
const QUICK: Plan = {
  occupancy: { rounds: 3, creates: 200, connections: [1, 16] },
  history: { ...EACH, many: 100_000, rounds: 3, isUncachedToo: false },
};
/** The rounds of a run with a given number of invoices, in which filling takes most of the time. */
const ROUNDS = 3;

const MOST = { occupancy: 2, history: 1.3 };
const SETTINGS = [
  'shared_buffers',
  'max_wal_size',
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'effective_cache_size',
];

/**
 * Measures whether creation becomes slower as a pool fills up, and whether creating and matching become slower as the ledger grows. With
 * `invoices`, measures only the second question, for that many invoices, with and without enough memory for their indexes.
 */
export async function runGrowth(
  options: BenchServer & {
    isQuick: boolean;
    invoices: number | null;
    onProgress(text: string): void;
  },
): Promise<BenchResult> {
  const { postgres, isQuick, invoices, onProgress } = options;
  const plan = isQuick ? QUICK : FULL;
  const settings = await readSettings(postgres);
  const occupancy = invoices === null ? await measureOccupancy(postgres, plan.occupancy, onProgress) : null;
  const wanted =
    invoices === null ? plan.history : { ...EACH, many: invoices, rounds: isQuick ? 1 : ROUNDS, isUncachedToo: true };
  const history = await measureHistory(options, wanted, onProgress);
  const markdown = [
    ...(occupancy === null ? [] : [show(['empty', '95 % taken'], occupancy, MOST.occupancy)]),
    showHistory(history, wanted),
    JSON.stringify(settings),
  ].join('\n\n');
  return { markdown, record: { plan: { ...plan, history: wanted }, settings, occupancy, history } };
}

function readSettings(postgres: BenchServer['postgres']): Promise<Record<string, string>> {
  return onServer(postgres, async (client) => {
    const { rows } = await client.query<{ name: string; value: string }>(
      'select name, current_setting(name) as value from pg_settings where name = any ($1)',
      [SETTINGS],
    );
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  });
}

function showHistory({ cached, uncached, megabytes, fillSeconds }: History, plan: HistoryPlan): string {
  const sides: [string, string] = [`${plan.few} invoices`, `${plan.many} invoices`];
  const size = ({ all, indexes }: Megabytes) => `${all} MB, of which indexes ${indexes}`;
  return [
    showAll(sides, cached),
    ...(uncached === null ? [] : ["Nothing but PostgreSQL's own memory keeps pages:", showAll(sides, uncached)]),
    `Databases: ${size(megabytes.few)}; ${size(megabytes.many)}. Filled in ${fillSeconds} s.`,
  ].join('\n\n');
}

function showAll(sides: [string, string], measured: Measured): string {
  return `${show(sides, measured.comparisons, MOST.history)}\n\n${showCosts(measured)}`;
}

function showCosts({ costs }: Measured): string {
  const rows = Object.entries(costs).map(([name, [few, many]]) => [
    name,
    ...[few.cpuMs, many.cpuMs].map((ms) => ms.toFixed(2)),
    (many.cpuMs / few.cpuMs).toFixed(2),
    ...[few.logBytes, many.logBytes, few.readBytes, many.readBytes].map((bytes) => (bytes / 1024).toFixed(1)),
  ]);
  return table(['each', 'CPU ms', 'second', 'ratio', 'log KB', 'second', 'read KB', 'second'], rows);
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
