import { type Target, table } from '../targets.ts';

/** Deliveries per second of one round. `cpuUs` is the service's CPU time for a delivery to one endpoint. */
export type Round = {
  one: number;
  bareOne: number;
  many: number;
  bareMany: number;
  /** To the 99 endpoints, while one more hangs. */
  beside: number;
  cpuUs: number;
};

export type WebhookFigures = { rounds: Round[]; latencies: number[] };

const LATENCY_LIMIT_MS = 200;

/** The targets for these figures. */
export function judgeWebhooks({ rounds, latencies }: WebhookFigures): Target[] {
  const atLeast = (name: string, measured: number, least: number): Target => ({
    ...{ name, reach: `≥ ${least.toFixed(2)}`, measured, isReached: measured >= least },
  });
  const p99 = quantile(latencies, 0.99);
  return [
    atLeast('deliveries/s to one endpoint, of a bare loop', median(ratios(rounds, 'one', 'bareOne')), 0.5),
    atLeast('the same beside one that hangs, of without it', median(ratios(rounds, 'beside', 'many')), 0.9),
    {
      ...{ name: 'committed → first attempt, p99 ms', reach: `< ${LATENCY_LIMIT_MS}`, measured: p99 },
      isReached: p99 < LATENCY_LIMIT_MS,
    },
  ];
}

/** The tables in Markdown, as in docs/contributing/measurements/webhooks.md. */
export function showWebhooks({ rounds, latencies }: WebhookFigures): string {
  const line = (name: string, above: keyof Round, below: keyof Round) => {
    const all = ratios(rounds, above, below);
    const spread = `${median(all).toFixed(2)} (${Math.min(...all).toFixed(2)}–${Math.max(...all).toFixed(2)})`;
    return [name, Math.round(median(pick(rounds, above))), Math.round(median(pick(rounds, below))), spread].map(String);
  };
  return [
    table(
      ['', 'deliveries/s', 'beside', 'ratio: median (lowest–highest)'],
      [
        line('one endpoint, beside a bare loop', 'one', 'bareOne'),
        line('99 endpoints, beside a bare loop', 'many', 'bareMany'),
        line('99 endpoints and one that hangs, beside 99', 'beside', 'many'),
      ],
    ),
    `Committed → first attempt, p50 / p99 of ${latencies.length}: ${quantile(latencies, 0.5).toFixed(1)} / ${quantile(latencies, 0.99).toFixed(1)} ms. CPU of the service: ${Math.round(median(pick(rounds, 'cpuUs')))} µs a delivery.`,
  ].join('\n\n');
}

function pick(rounds: Round[], field: keyof Round): number[] {
  return rounds.map((round) => round[field]);
}

function ratios(rounds: Round[], above: keyof Round, below: keyof Round): number[] {
  return rounds.map((round) => round[above] / round[below]);
}

function median(values: number[]): number {
  return quantile(values, 0.5);
}

/** Returns the smallest value that this share of the values doesn't exceed. */
function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
