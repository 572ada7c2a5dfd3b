import { type Target, table } from '../targets.ts';
import type { LoadAnswer } from './readers.ts';

/** One second of open pages while only blocks arrive. `transactions` are those of the whole database, including the benchmark's own. */
export type Idle = {
  queries: { invoices: number; heads: number };
  transactions: number;
  cpuShare: number;
  messages: number;
  bytes: number;
  lagP99Ms: number;
};

/** Memory is resident memory in bytes. */
type Rest = { idle: Idle; memory: number };

/** Times are in milliseconds unless stated otherwise. */
export type CheckoutFigures = {
  pages: number;
  opening: { seconds: number; cpuMs: number };
  /** Without any open page, and with all of them. */
  none: Rest;
  open: Rest;
  listening: number;
  changes: number[];
  burstMs: number;
  blindMs: number;
  alone: LoadAnswer[];
  beside: LoadAnswer[];
};

/** The targets for these figures. For queries, they only require that their number doesn't depend on the number of pages. */
export function judgeCheckout({ open, listening, changes }: CheckoutFigures): Target[] {
  const queries = open.idle.queries.invoices + open.idle.queries.heads;
  const p99 = quantile(changes, 0.99);
  return [
    { name: 'connections that listen', reach: '1', measured: listening, isReached: listening === 1 },
    { name: 'queries/s for all open pages', reach: '≤ 5', measured: queries, isReached: queries <= 5 },
    { name: 'change sent → reader, p99 ms', reach: '< 500', measured: p99, isReached: p99 < 500 },
  ];
}

/** The tables in Markdown, as in docs/contributing/measurements/open-pages.md. */
export function showCheckout(figures: CheckoutFigures): string {
  const { pages, opening, none, open, changes, alone, beside } = figures;
  const both = (show: (rest: Rest) => string) => [show(none), show(open)];
  const perPage = (open.memory - none.memory) / pages / 1024;
  const rows = [
    ['resident memory', ...both(({ memory }) => `${(memory / 1e6).toFixed(0)} MB`)],
    ['of a page', '', `${perPage.toFixed(1)} KiB`],
    [
      'queries/s: invoices + heads',
      ...both(({ idle }) => `${idle.queries.invoices.toFixed(2)} + ${idle.queries.heads.toFixed(2)}`),
    ],
    ['transactions/s, those of the bench among them', ...both(({ idle }) => idle.transactions.toFixed(2))],
    ['CPU, of a core', ...both(({ idle }) => `${(idle.cpuShare * 100).toFixed(1)} %`)],
    ['lag of the event loop, p99', ...both(({ idle }) => `${idle.lagP99Ms.toFixed(1)} ms`)],
    ['messages/s, bytes/s', ...both(({ idle }) => `${idle.messages.toFixed(0)}, ${idle.bytes.toFixed(0)}`)],
    ['connections that listen', '', figures.listening],
    ['all opened within; CPU of one', '', `${opening.seconds.toFixed(1)} s; ${(opening.cpuMs / pages).toFixed(2)} ms`],
    [
      'one change → its reader, p50 / p99',
      '',
      `${quantile(changes, 0.5).toFixed(1)} / ${quantile(changes, 0.99).toFixed(1)} ms`,
    ],
    ['a fifth changed at once → the last reader', '', `${figures.burstMs.toFixed(0)} ms`],
    ['blind → the last reader', '', `${figures.blindMs.toFixed(0)} ms`],
  ];
  const load = (name: string, rounds: LoadAnswer[]) => [
    name,
    ...[middle(rounds, 'perSecond').toFixed(0), middle(rounds, 'p50').toFixed(2), middle(rounds, 'p99').toFixed(2)],
  ];
  const ratio = (field: keyof LoadAnswer) => (middle(beside, field) / middle(alone, field)).toFixed(2);
  return [
    table(['', 'none open', `${pages} open`], rows),
    table(
      ['GET of the page, 4 at once', 'pages/s', 'p50 ms', 'p99 ms'],
      [
        load('none open', alone),
        load(`${pages} open`, beside),
        ['ratio', ratio('perSecond'), ratio('p50'), ratio('p99')],
      ],
    ),
  ].join('\n\n');
}

function middle(rounds: LoadAnswer[], field: keyof LoadAnswer): number {
  return quantile(
    rounds.map((round) => round[field]),
    0.5,
  );
}

/** Returns the smallest value that this share of the values doesn't exceed. */
function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
