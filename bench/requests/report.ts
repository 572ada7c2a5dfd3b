import type { Sample } from '../rounds.ts';
import { type Target, table } from '../targets.ts';

type Stretch = Omit<Sample, 'round'>;
/** One value per round, in the order of the rounds. */
export type RequestFigures = { logged: Stretch[]; silent: Stretch[]; lookUpsMs: number[] };

const LEAST = 0.97;
const LOOK_UP_LIMIT_MS = 100;

const cpuUs = ({ serverCpuUs, postgresCpuUs, loadCpuUs }: Stretch) => serverCpuUs + postgresCpuUs + loadCpuUs;

/** The targets for these figures. */
export function judgeRequests(figures: RequestFigures): Target[] {
  const speed = median(ratios(figures, ({ perSecond }) => perSecond));
  const slowest = quantile(figures.lookUpsMs, 1);
  return [
    { name: 'creations/s, of without the log', reach: `≥ ${LEAST}`, measured: speed, isReached: speed >= LEAST },
    {
      ...{ name: 'the slowest look-up of a request, ms', reach: `< ${LOOK_UP_LIMIT_MS}`, measured: slowest },
      isReached: slowest < LOOK_UP_LIMIT_MS,
    },
  ];
}

/** The tables in Markdown, as in docs/contributing/performance.md. */
export function showRequests(figures: RequestFigures): string {
  const { logged, silent, lookUpsMs } = figures;
  const line = (name: string, of: (stretch: Stretch) => number) => {
    const all = ratios(figures, of);
    const spread = `${median(all).toFixed(3)} (${Math.min(...all).toFixed(2)}–${Math.max(...all).toFixed(2)})`;
    return [name, ...[logged, silent].map((side) => Math.round(median(side.map(of)))), spread];
  };
  const rows = [
    line('creations/s', ({ perSecond }) => perSecond),
    line('CPU µs of a creation: service', ({ serverCpuUs }) => serverCpuUs),
    line('CPU µs of a creation: PostgreSQL', ({ postgresCpuUs }) => postgresCpuUs),
    line('CPU µs of a creation: both and the load', cpuUs),
    line('p99 ms', ({ p99 }) => p99),
  ];
  const others = median([...logged, ...silent].map(({ otherCores }) => otherCores));
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => quantile(lookUpsMs, share).toFixed(1));
  return [
    table(['', 'with the log', 'without', 'ratio: median (lowest–highest)'], rows),
    `Others kept ${others.toFixed(2)} cores busy (median). A request looked up, p50 / p99 / most of ${lookUpsMs.length}: ${p50} / ${p99} / ${most} ms.`,
  ].join('\n\n');
}

/** The ratio with the log to without it, for the same rounds. */
function ratios({ logged, silent }: RequestFigures, of: (stretch: Stretch) => number): number[] {
  return logged.flatMap((stretch, round) => {
    const other = silent[round];
    return other === undefined ? [] : [of(stretch) / of(other)];
  });
}

const median = (values: readonly number[]) => quantile(values, 0.5);

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
