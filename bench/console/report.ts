import { type Target, table } from '../targets.ts';
import { BARE, type Look } from './pages.ts';

/** What other people do while invoices are created. */
export const PHASES: Record<string, { looks: boolean; exports: boolean }> = {
  alone: { looks: false, exports: false },
  'four people look': { looks: true, exports: false },
  'one exports': { looks: false, exports: true },
  both: { looks: true, exports: true },
};

/** `kind` is one of PHASES. The other members are creations per second, the pages that people viewed meanwhile, and the exported data. */
export type Phase = { kind: string; perSecond: number; p99: number; clicks: number; bytes: number };

/** Pages that compare up to 40 transfers with 2,000 invoices to explain why none of them was paid, whatever the size of the ledger. */
const COMPARING = ['Find an old order', 'Unmatched'];
const MOST = { p95Ms: 100, p50OfBare: 20, comparing: { p95Ms: 300, p50OfBare: 40 }, stallMs: 50, slowed: 0.03 };

/** How much less a phase creates than the undisturbed phase of its round: the median of the rounds. */
function slowed(phases: readonly Phase[], kind: string): number {
  const of = (wanted: string) => phases.filter((phase) => phase.kind === wanted).map(({ perSecond }) => perSecond);
  const alone = of('alone');
  return median(of(kind).map((perSecond, round) => 1 - perSecond / (alone[round] ?? Number.NaN)));
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

function judgeSlowest(looks: readonly Look[], bare: number, most: { p95Ms: number; p50OfBare: number }): Target[] {
  const p95 = looks.toSorted((a, b) => b.p95 - a.p95)[0] ?? { name: 'none', p95: 0 };
  const p50 = looks.toSorted((a, b) => b.p50 - a.p50)[0] ?? { name: 'none', p50: 0 };
  return [
    {
      ...{ name: `p95 of ${p95.name} in ms`, reach: `≤ ${most.p95Ms}`, measured: p95.p95 },
      isReached: p95.p95 <= most.p95Ms,
    },
    {
      ...{ name: `p50 of ${p50.name}, of ${BARE}`, reach: `≤ ${most.p50OfBare}`, measured: p50.p50 / bare },
      isReached: p50.p50 / bare <= most.p50OfBare,
    },
  ];
}

export function judgeConsole(looks: readonly Look[], phases: readonly Phase[]): Target[] {
  const bare = looks.find(({ name }) => name === BARE)?.p50 ?? 1;
  const stalled = looks.toSorted((a, b) => b.stall - a.stall)[0];
  const share = slowed(phases, 'both');
  return [
    ...judgeSlowest(
      looks.filter(({ name }) => !COMPARING.includes(name)),
      bare,
      MOST,
    ),
    ...judgeSlowest(
      looks.filter(({ name }) => COMPARING.includes(name)),
      bare,
      MOST.comparing,
    ),
    {
      ...{ name: `longest stall (${stalled?.name}) in ms`, reach: `≤ ${MOST.stallMs}`, measured: stalled?.stall ?? 0 },
      isReached: (stalled?.stall ?? 0) <= MOST.stallMs,
    },
    ...(phases.length === 0
      ? []
      : [
          {
            ...{ name: 'share by which people slow creation down', reach: `< ${MOST.slowed}`, measured: share },
            isReached: share < MOST.slowed,
          },
        ]),
  ];
}

export function showConsole(invoices: number, looks: readonly Look[], phases: readonly Phase[]): string {
  const bare = looks.find(({ name }) => name === BARE)?.p50 ?? 1;
  const rows = looks.map(({ name, first, p50, p95, max, stall, bytes }) => [
    name,
    ...[first, p50, p95, max].map((ms) => ms.toFixed(1)),
    (p50 / bare).toFixed(1),
    stall.toFixed(1),
    (bytes / 1000).toFixed(1),
  ]);
  const creating = phases.map(({ kind, perSecond, p99, clicks, bytes }) => [
    kind,
    ...[perSecond.toFixed(0), p99.toFixed(0), String(clicks), (bytes / 1000).toFixed(0)],
  ]);
  const shares = Object.keys(PHASES).map((kind) => [kind, slowed(phases, kind).toFixed(3)]);
  return [
    `${invoices} invoices. Milliseconds, and how often a page that asks for nothing (${BARE}):`,
    table(['Page', 'first', 'p50', 'p95', 'max', 'p50 of bare', 'stall', 'kB'], rows),
    ...(phases.length === 0
      ? []
      : [table(['Creating', 'a second', 'p99 ms', 'pages', 'kB'], creating), table(['Creating', 'slowed by'], shares)]),
  ].join('\n\n');
}
