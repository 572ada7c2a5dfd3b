import type { Side, Tables } from './databases.ts';
import { SIDES, TABLES } from './databases.ts';
import type { Memory } from './memory.ts';
import { type Sample, WORKS, type Work } from './rounds.ts';
import { type Target, table } from './targets.ts';

type Figures = Omit<Sample, 'round' | 'work' | 'tables' | 'side' | 'connections'>;

/** One line of the table: the medians over the rounds, and for each pair of sides the ratios of the same rounds. */
export type Line = {
  work: Work;
  tables: Tables;
  connections: number;
  sides: Record<Side, Figures>;
  ratios: Record<Measured, Record<Baseline, Spread>>;
};

const MEASURED = ['default', 'api'] as const;
const BASELINES = ['bare', 'plain'] as const;
type Measured = (typeof MEASURED)[number];
type Baseline = (typeof BASELINES)[number];

/** The ratio of creation on full tables to creation on fresh ones, for each side. */
export type Growth = { connections: number; sides: Record<Side, Spread> };

/** `halves` are the medians of the even and the odd rounds. A target counts as reached only if both reach it. */
type Spread = { median: number; lowest: number; highest: number; halves: number[] };

export function summarize(samples: Sample[], connections: number[]): { lines: Line[]; growth: Growth[] } {
  const pick = (want: Partial<Sample>) =>
    samples.filter((sample) => Object.entries(want).every(([key, value]) => sample[key as keyof Sample] === value));
  const lines = WORKS.flatMap((work) =>
    TABLES.flatMap((tables) =>
      connections.map((count): Line => {
        const of = (side: Side) => pick({ work, tables, side, connections: count });
        const ratiosOf = (side: Measured) => byKey(BASELINES, (baseline) => ratios(of(side), of(baseline)));
        const sides = byKey(SIDES, (side) => medians(of(side)));
        return { work, tables, connections: count, sides, ratios: byKey(MEASURED, ratiosOf) };
      }),
    ),
  );
  const growth = connections.map((count): Growth => {
    const of = (side: Side, tables: Tables) => pick({ work: 'create', tables, side, connections: count });
    return { connections: count, sides: byKey(SIDES, (side) => ratios(of(side, 'full'), of(side, 'fresh'))) };
  });
  return { lines, growth };
}

function byKey<Key extends string, Value>(keys: readonly Key[], of: (key: Key) => Value): Record<Key, Value> {
  return Object.fromEntries(keys.map((key) => [key, of(key)])) as Record<Key, Value>;
}

function medians(samples: Sample[]): Figures {
  const of = (field: keyof Figures) => median(samples.map((sample) => sample[field]));
  return {
    ...{ perSecond: of('perSecond'), p50: of('p50'), p99: of('p99') },
    ...{ serverCpuUs: of('serverCpuUs'), postgresCpuUs: of('postgresCpuUs'), loadCpuUs: of('loadCpuUs') },
    otherCores: of('otherCores'),
  };
}

/** The throughput ratios of samples that belong to the same round. */
function ratios(above: Sample[], below: Sample[]): Spread {
  const pairs = above.flatMap(({ round, perSecond }) => {
    const other = below.find((sample) => sample.round === round);
    return other === undefined ? [] : [{ round, ratio: perSecond / other.perSecond }];
  });
  const values = pairs.map(({ ratio }) => ratio);
  const half = (parity: number) => pairs.filter(({ round }) => round % 2 === parity).map(({ ratio }) => ratio);
  const halves = [half(1), half(0)].filter(({ length }) => length > 0).map(median);
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values), halves };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = NaN, high = NaN] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}

const IDLE_LIMIT_MB = 150;
const CREATE_CPU_LIMIT_US = 400;

/** The targets for these figures: ratios to the baseline with the same constraints. */
export function judge(lines: Line[], growth: Growth[], memory: Memory): Target[] {
  const most = Math.max(...lines.map(({ connections }) => connections));
  const atLeast = (name: string, spread: Spread, least: number): Target => ({
    name,
    reach: `≥ ${least.toFixed(2)}`,
    measured: spread.median,
    isReached: spread.halves.every((value) => value >= least),
  });
  const atMost = (name: string, measured: number, limit: number): Target => ({
    ...{ name, reach: `≤ ${limit}`, measured, isReached: measured <= limit },
  });
  const ofBare = MEASURED.flatMap((side) =>
    lines.flatMap(({ work, tables, connections, ratios: of }) => {
      const least = leastOf(side, work, connections, most);
      if (least === null) return [];
      const name = `${side}: ${work} on ${tables} tables, ${connections} connections, of bare`;
      return [atLeast(name, of[side].bare, least)];
    }),
  );
  const grown = growth.filter(({ connections }) => connections === most);
  return [
    ...ofBare,
    ...lines
      .filter(({ work, connections }) => work === 'create' && connections === most)
      .map(({ tables, connections, sides: { api } }) => {
        const name = `api: CPU µs of a creation on ${tables} tables, ${connections} connections`;
        return atMost(name, api.serverCpuUs + api.postgresCpuUs, CREATE_CPU_LIMIT_US);
      }),
    ...grown.map(({ sides }) =>
      atLeast(`api: create on full tables, ${most} connections, of fresh ones`, sides.api, 0.9),
    ),
    atMost('idle API process, MB', megabytes(memory.settled), IDLE_LIMIT_MB),
  ];
}

/** The lowest acceptable ratio to the bare baseline; `null` if there is no target. */
function leastOf(side: Measured, work: Work, connections: number, most: number): number | null {
  if (connections === most) {
    if (work === 'read') return 0.9;
    return side === 'default' ? 1 : 1.2;
  }
  return connections === 1 && work === 'create' && side === 'api' ? 0.85 : null;
}

/** The tables in Markdown, as in docs/contributing/measurements/creating-and-reading.md. */
export function toMarkdown(lines: Line[], growth: Growth[], memory: Memory): string {
  const rows = lines.map(({ work, tables, connections, ratios: of, sides }) => [
    `${work}, ${tables}`,
    connections,
    ...SIDES.map((side) => Math.round(sides[side].perSecond)),
    ...MEASURED.flatMap((side) => BASELINES.map((baseline) => showSpread(of[side][baseline]))),
    `${sides.default.p50} / ${sides.default.p99}`,
    `${sides.bare.p50} / ${sides.bare.p99}`,
    ...[showCpu(sides.default), showCpu(sides.api), showCpu(sides.bare)],
    Math.max(...SIDES.map((side) => sides[side].otherCores)).toFixed(2),
  ]);
  const head = [
    ...['', 'conn.', 'default/s', 'api/s', 'bare/s', 'plain/s'],
    ...['default, of bare', 'of plain', 'api, of bare', 'of plain'],
    ...['default p50/p99 ms', 'bare', 'CPU µs default', 'api', 'bare', 'cores of others'],
  ];
  const grown = growth.map(({ connections, sides }) => [connections, ...SIDES.map((side) => showSpread(sides[side]))]);
  const { atStart, settled, helpers } = memory;
  const idle = [atStart, settled, helpers].map((bytes) => megabytes(bytes).toFixed(0));
  return [
    table(head, rows),
    table(['create, full / fresh', ...SIDES], grown),
    table(['idle API process: at start MB', 'settled MB', 'its helpers MB'], [idle]),
  ].join('\n\n');
}

function showSpread({ median: middle, lowest, highest }: Spread): string {
  return `${middle.toFixed(2)} (${lowest.toFixed(2)}–${highest.toFixed(2)})`;
}

/** Server + PostgreSQL, per request. */
function showCpu({ serverCpuUs, postgresCpuUs }: Figures): string {
  return `${Math.round(serverCpuUs)} + ${Math.round(postgresCpuUs)}`;
}

function megabytes(bytes: number): number {
  return bytes / 1e6;
}
