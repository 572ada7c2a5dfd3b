import type { Sample } from '../rounds.ts';
import { type Target, table } from '../targets.ts';

type Stretch = Omit<Sample, 'round'>;
type Round = Record<'create' | 'read', Stretch>;
/** One value per round, in the order of the rounds. */
export type SealFigures = Record<'require' | 'off', Round[]>;

/** The CPU of both processes, relative to the one without seals. */
const MOST = { create: 1.08, read: 1.03 };

const cpuUs = ({ serverCpuUs, postgresCpuUs }: Stretch) => serverCpuUs + postgresCpuUs;

/** The targets for these figures. */
export function judgeSeals(figures: SealFigures): Target[] {
  return (['create', 'read'] as const).map((work) => {
    const measured = median(ratios(figures, work, cpuUs));
    return {
      name: `CPU to ${work}, of without seals`,
      reach: `≤ ${MOST[work]}`,
      measured,
      isReached: measured <= MOST[work],
    };
  });
}

/** The tables in Markdown, as in docs/contributing/performance.md. */
export function showSeals(figures: SealFigures): string {
  const line = (name: string, work: 'create' | 'read', of: (stretch: Stretch) => number) => {
    const all = ratios(figures, work, of);
    const sides = [figures.require, figures.off].map((side) =>
      Math.round(median(side.map((round) => of(round[work])))),
    );
    return [
      name,
      ...sides,
      `${median(all).toFixed(3)} (${Math.min(...all).toFixed(2)}–${Math.max(...all).toFixed(2)})`,
    ];
  };
  const rows = (['create', 'read'] as const).flatMap((work) => [
    line(`${work}: a second`, work, ({ perSecond }) => perSecond),
    line(`${work}: CPU µs of the service`, work, ({ serverCpuUs }) => serverCpuUs),
    line(`${work}: CPU µs of PostgreSQL`, work, ({ postgresCpuUs }) => postgresCpuUs),
    line(`${work}: CPU µs of both`, work, cpuUs),
  ]);
  return table(['', 'sealed', 'without', 'ratio: median (lowest–highest)'], rows);
}

function ratios({ require, off }: SealFigures, work: 'create' | 'read', of: (stretch: Stretch) => number): number[] {
  return require.flatMap((round, index) => {
    const other = off[index];
    return other === undefined ? [] : [of(round[work]) / of(other[work])];
  });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
