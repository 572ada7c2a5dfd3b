import { quantile } from '../quantile.ts';
import { type Target, table } from '../targets.ts';
import type { FloodResult } from './flood.ts';

/**
 * `elsewhere` means that another service on the same machine is flooded instead of this one. That shows the machine's share of the cost.
 */
export type Load = 'quiet' | 'flooded' | 'elsewhere';

/** Latencies are in milliseconds. `cpuShare` is a percentage of one core, by the roles of each process of the service. */
export type Phase = {
  load: Load;
  fromMs: number;
  untilMs: number;
  /** From the commit of an event to its arrival, and from the moment when a block is available to the commit of its changes. */
  delivered: number[];
  confirming: number[];
  paid: number[];
  flood: FloodResult | null;
  cpuShare: Record<string, number>;
};

export type Measured = { name: string; phases: Phase[] };

type Kind = 'confirming' | 'paid' | 'delivered';
const KINDS: { kind: Kind; name: string }[] = [
  { kind: 'confirming', name: 'block → CONFIRMING' },
  { kind: 'paid', name: 'block → PAID' },
  { kind: 'delivered', name: 'event → delivered' },
];
/** The phases alternate, so that a ratio compares the same minutes. */
export const LOADS: Load[] = ['quiet', 'flooded', 'elsewhere'];
const SHARES = [0.5, 0.99] as const;
const LIMIT = 2;

export function judgeOverload(measured: Measured[]): Target[] {
  return measured.flatMap(({ name, phases }) =>
    KINDS.flatMap((of) =>
      SHARES.map((share): Target => {
        const ratio =
          quantile(pick(phases, of.kind, 'flooded'), share) / quantile(pick(phases, of.kind, 'quiet'), share);
        const what = `${name}: ${of.name}, p${share * 100}, flooded / quiet`;
        return { name: what, reach: `≤ ${LIMIT}`, measured: ratio, isReached: ratio <= LIMIT };
      }),
    ),
  );
}

/** The tables in Markdown, as in docs/contributing/measurements/overload.md. */
export function showOverload(measured: Measured[]): string {
  const show = (latencies: number[]) => SHARES.map((share) => quantile(latencies, share).toFixed(1)).join(' / ');
  const rows = measured.flatMap(({ name, phases }) =>
    KINDS.map((of) => {
      const latencies = LOADS.map((load) => pick(phases, of.kind, load));
      return [name, of.name, latencies.map(({ length }) => length).join(' / '), ...latencies.map(show)];
    }),
  );
  const floods = measured.flatMap(({ name, phases }) =>
    phases.map(({ load, flood, cpuShare }, index) => [
      `${name}, phase ${index + 1}, ${load}`,
      flood === null ? '–' : showFlood(flood),
      flood === null ? '–' : `${flood.p50} / ${flood.p99}`,
      Object.entries(cpuShare)
        .map(([roles, share]) => `${roles} ${share.toFixed(0)} %`)
        .join(', '),
    ]),
  );
  return [
    table(['', 'ms, p50 / p99', 'samples', 'quiet', 'flooded', 'another flooded'], rows),
    table(['', 'answers/s by status', 'their p50 / p99 ms', 'CPU of a core'], floods),
  ].join('\n\n');
}

function showFlood({ statuses, errors, seconds }: FloodResult): string {
  const counts = Object.entries(statuses).map(([status, count]) => `${status}: ${Math.round(count / seconds)}`);
  return [...counts, ...(errors > 0 ? [`errors: ${errors}`] : [])].join(', ');
}

function pick(phases: Phase[], kind: Kind, load: Load): number[] {
  return phases.filter((phase) => phase.load === load).flatMap((phase) => phase[kind]);
}
