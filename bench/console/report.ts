import { type Target, table } from '../targets.ts';
import { BARE, type Look } from './pages.ts';

/** Creations a second, and the pages that people looked at meanwhile. */
export type Phase = { isBusy: boolean; perSecond: number; p99: number; clicks: number };

const MOST = { p95Ms: 50, slowed: 0.03 };

/** The share by which the median phase with clicks creates less than the median one without. */
function slowed(phases: readonly Phase[]): number {
  const of = (isBusy: boolean) =>
    median(phases.filter((phase) => phase.isBusy === isBusy).map(({ perSecond }) => perSecond));
  return 1 - of(true) / of(false);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

export function judgeConsole(looks: readonly Look[], phases: readonly Phase[]): Target[] {
  const slowest = looks.toSorted((a, b) => b.p95 - a.p95)[0];
  const share = slowed(phases);
  return [
    {
      ...{ name: `slowest page (${slowest?.name}), p95 in ms`, reach: `≤ ${MOST.p95Ms}`, measured: slowest?.p95 ?? 0 },
      isReached: (slowest?.p95 ?? 0) <= MOST.p95Ms,
    },
    {
      ...{ name: 'share by which people slow creation down', reach: `< ${MOST.slowed}`, measured: share },
      isReached: share < MOST.slowed,
    },
  ];
}

export function showConsole(invoices: number, looks: readonly Look[], phases: readonly Phase[]): string {
  const bare = looks.find(({ name }) => name === BARE)?.p50 ?? 1;
  const rows = looks.map(({ name, first, p50, p95, bytes }) => [
    name,
    ...[first, p50, p95].map((ms) => ms.toFixed(1)),
    (p50 / bare).toFixed(1),
    (bytes / 1000).toFixed(1),
  ]);
  const creating = phases.map(({ isBusy, perSecond, p99, clicks }) => [
    isBusy ? 'people click' : 'alone',
    ...[perSecond.toFixed(0), p99.toFixed(0), String(clicks)],
  ]);
  return [
    `${invoices} invoices. Milliseconds, and how often a page that asks for nothing (${BARE}):`,
    table(['Page', 'first', 'p50', 'p95', 'of bare', 'kB'], rows),
    table(['Creating', 'a second', 'p99 ms', 'pages'], creating),
  ].join('\n\n');
}
