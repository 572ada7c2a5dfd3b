import { SIDES, type Side, TABLES, type Tables } from './databases.ts';
import type { Memory } from './memory.ts';
import { type Sample, WORKS, type Work } from './rounds.ts';

/** One line of the table: medians over the rounds. `ratio` is the median of the ratios of each round, with its lowest and highest. */
export type Line = {
  work: Work;
  tables: Tables;
  connections: number;
  ratio: Spread;
  sides: Record<Side, Omit<Sample, 'round' | 'work' | 'tables' | 'side' | 'connections'>>;
};

/** Create on full tables in relation to create on fresh ones, for each side. */
export type Growth = { connections: number; service: Spread; baseline: Spread };

type Spread = { median: number; lowest: number; highest: number };

export type Target = { name: string; reach: string; measured: number; isReached: boolean };

export function summarize(samples: Sample[], connections: number[]): { lines: Line[]; growth: Growth[] } {
  const pick = (want: Partial<Sample>) =>
    samples.filter((sample) => Object.entries(want).every(([key, value]) => sample[key as keyof Sample] === value));
  const lines = WORKS.flatMap((work) =>
    TABLES.flatMap((tables) =>
      connections.map((count): Line => {
        const of = (side: Side) => pick({ work, tables, side, connections: count });
        const sides = { service: medians(of('service')), baseline: medians(of('baseline')) };
        return { work, tables, connections: count, ratio: ratios(of('service'), of('baseline')), sides };
      }),
    ),
  );
  const growth = connections.map((count): Growth => {
    const [service, baseline] = SIDES.map((side) => {
      const of = (tables: Tables) => pick({ work: 'create', tables, side, connections: count });
      return ratios(of('full'), of('fresh'));
    });
    if (service === undefined || baseline === undefined) throw new Error('a side is missing');
    return { connections: count, service, baseline };
  });
  return { lines, growth };
}

function medians(samples: Sample[]): Line['sides'][Side] {
  const of = (field: keyof Line['sides'][Side]) => median(samples.map((sample) => sample[field]));
  return {
    ...{ perSecond: of('perSecond'), p50: of('p50'), p99: of('p99') },
    ...{ serverCpuUs: of('serverCpuUs'), postgresCpuUs: of('postgresCpuUs'), loadCpuUs: of('loadCpuUs') },
  };
}

/** The ratios of throughput of samples that belong to the same round. */
function ratios(above: Sample[], below: Sample[]): Spread {
  const values = above.flatMap(({ round, perSecond }) => {
    const other = below.find((sample) => sample.round === round);
    return other === undefined ? [] : [perSecond / other.perSecond];
  });
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = NaN, high = NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}

const IDLE_LIMIT_MB = 150;

/** The targets that these figures are held against. */
export function judge(lines: Line[], growth: Growth[], memory: Memory): Target[] {
  const most = Math.max(...lines.map(({ connections }) => connections));
  const targets = lines
    .filter(({ connections }) => connections === most)
    .map(({ work, tables, ratio }): Target => {
      const least = work === 'create' ? 0.7 : 0.8;
      const name = `${work} on ${tables} tables, ${most} connections, of the baseline`;
      return { name, reach: `≥ ${least.toFixed(2)}`, measured: ratio.median, isReached: ratio.median >= least };
    });
  const grown = growth.find(({ connections }) => connections === most)?.service.median ?? NaN;
  const name = `create on full tables, ${most} connections, of create on fresh ones`;
  targets.push({ name, reach: '≥ 0.90', measured: grown, isReached: grown >= 0.9 });
  const measured = megabytes(memory.settled);
  const isReached = measured <= IDLE_LIMIT_MB;
  targets.push({ name: 'idle API process, MB', reach: `≤ ${IDLE_LIMIT_MB}`, measured, isReached });
  return targets;
}

/** The tables in Markdown, as they stand in docs/measurements/creating-and-reading.md. */
export function toMarkdown(lines: Line[], growth: Growth[], memory: Memory, targets: Target[]): string {
  const rows = lines.map(({ work, tables, connections, ratio, sides: { service, baseline } }) => [
    `${work}, ${tables}`,
    ...[connections, Math.round(service.perSecond), Math.round(baseline.perSecond), showSpread(ratio)],
    ...[`${service.p50} / ${service.p99}`, `${baseline.p50} / ${baseline.p99}`],
    ...[showCpu(service), showCpu(baseline)],
  ]);
  const head = ['', 'conn.', 'service/s', 'baseline/s', 'ratio', 'p50/p99 ms', 'baseline', 'CPU µs', 'baseline'];
  const grown = growth.map(({ connections, service, baseline }) => [
    connections,
    showSpread(service),
    showSpread(baseline),
  ]);
  const { atStart, settled, helpers } = memory;
  const idle = [atStart, settled, helpers].map((bytes) => megabytes(bytes).toFixed(0));
  const judged = targets.map(({ name, reach, measured, isReached }) => [
    name,
    reach,
    measured.toFixed(measured > 10 ? 0 : 2),
    isReached ? 'yes' : 'NO',
  ]);
  return [
    table(head, rows),
    table(['create, full / fresh', 'service', 'baseline'], grown),
    table(['idle API process: at start MB', 'settled MB', 'its helpers MB'], [idle]),
    table(['target', 'reach', 'measured', 'reached'], judged),
  ].join('\n\n');
}

function showSpread({ median: middle, lowest, highest }: Spread): string {
  return `${middle.toFixed(2)} (${lowest.toFixed(2)}–${highest.toFixed(2)})`;
}

/** Server + PostgreSQL, for one request. */
function showCpu({ serverCpuUs, postgresCpuUs }: Line['sides'][Side]): string {
  return `${Math.round(serverCpuUs)} + ${Math.round(postgresCpuUs)}`;
}

function megabytes(bytes: number): number {
  return bytes / 1e6;
}

/** A table in Markdown, padded. */
export function table(head: (string | number)[], rows: (string | number)[][]): string {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [first = [], ...rest] = cells;
  return [line(first), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rest.map(line)].join('\n');
}
