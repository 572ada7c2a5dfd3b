import { quantile } from '../quantile.ts';
import { type Target, table } from '../targets.ts';
import type { AttackResult } from './attack.ts';
import type { HonestResult } from './honest.ts';

/** `transactions` are those of the whole database; `cpuShare` is a percentage of one core. */
export type Measured = {
  name: string;
  honest: HonestResult;
  flood: AttackResult | null;
  seconds: number;
  residentBytes: number;
  transactions: number;
  cpuShare: number;
};

const KINDS = ['creations', 'pages'] as const;
const EXPECTED = { creations: '201', pages: '200' } as const;
const [LEAST_ANSWERED, MOST_MS] = [0.99, 500];

export function judgeFloods(measured: Measured[]): Target[] {
  const floods = [...new Set(measured.map(({ name }) => name))];
  return floods.flatMap((name) => {
    const rounds = measured.filter((each) => each.name === name);
    const all = rounds.flatMap(({ honest }) => KINDS.flatMap((kind) => honest[kind].latencies));
    const answered = rounds.reduce((sum, each) => sum + KINDS.reduce((of, kind) => of + goodOf(each, kind), 0), 0);
    const refused = rounds.reduce((sum, { honest }) => sum + refusedOf(honest.creations.statuses), 0);
    const share = answered / all.length;
    const p99 = quantile(all, 0.99);
    return [
      { name: `${name}: answered`, reach: `≥ ${LEAST_ANSWERED}`, measured: share, isReached: share >= LEAST_ANSWERED },
      { name: `${name}: p99 ms`, reach: `< ${MOST_MS}`, measured: p99, isReached: p99 < MOST_MS },
      { name: `${name}: creations not made`, reach: '0', measured: refused, isReached: refused === 0 },
    ];
  });
}

export function showFloods(measured: Measured[]): string {
  const quiet = measured.filter(({ flood }) => flood === null);
  const perSecond = quiet.reduce((sum, each) => sum + each.transactions / each.seconds, 0) / quiet.length;
  const rows = measured.map((each) => [
    each.name,
    ...KINDS.flatMap((kind) => {
      const { statuses, latencies } = each.honest[kind];
      return [showStatuses(statuses), [0.5, 0.99, 1].map((share) => quantile(latencies, share).toFixed(0)).join(' / ')];
    }),
    each.flood === null ? '–' : showFlood(each.flood),
    each.flood === null ? '–' : perJunk(each, perSecond),
    `${each.cpuShare.toFixed(0)} %`,
    `${Math.round(each.residentBytes / 2 ** 20)}`,
  ]);
  return [
    table(
      [
        ...['', 'creations', 'p50 / p99 / most ms', 'pages', 'p50 / p99 / most ms'],
        ...['flood', 'transactions per request of it', 'CPU of a core', 'MiB'],
      ],
      rows,
    ),
  ].join('\n\n');
}

function showFlood({ opened, open, statuses, seconds }: AttackResult): string {
  const answers = Object.entries(statuses).map(([status, count]) => `${status}: ${Math.round(count / seconds)}/s`);
  return [`${opened} opened, ${open} at the end`, ...answers].join(', ');
}

/** Returns the database work beyond a quiet period, per request of the flood. */
function perJunk({ flood, transactions, seconds }: Measured, quietPerSecond: number): string {
  const requests = Object.values(flood?.statuses ?? {}).reduce((sum, count) => sum + count, 0);
  return requests === 0 ? '–' : ((transactions - quietPerSecond * seconds) / requests).toFixed(4);
}

function goodOf({ honest }: Measured, kind: (typeof KINDS)[number]): number {
  return honest[kind].statuses[EXPECTED[kind]] ?? 0;
}

function refusedOf(statuses: Record<string, number>): number {
  return Object.entries(statuses).reduce(
    (sum, [status, count]) => sum + (status === EXPECTED.creations ? 0 : count),
    0,
  );
}

function showStatuses(statuses: Record<string, number>): string {
  return Object.entries(statuses)
    .map(([status, count]) => `${status}: ${count}`)
    .join(', ');
}
