import { type Target, table } from '../targets.ts';
import type { CatchUp, CatchUpPlan } from './catch-up.ts';
import type { Floor } from './floor.ts';
import type { Live } from './live.ts';

export type IngestFigures = { madeMs: number; serverAlone: number; floors: Floor[]; catchUps: CatchUp[]; live: Live[] };

const LATENCY_LIMIT_MS = 300;
/** The rate for a day of blocks in five minutes, with the latency of real nodes. */
const FAR_RATE = 96;
const MEMORY_LIMIT_MB = 300;
const [GRPC_RATE, GRPC_MEMORY_LIMIT_MB] = [200, 250];
const HEAD_COLUMNS = [
  ...['nodes', 'blocks / pay every', 'requests/block'],
  ...['CONFIRMING', 'since shown', 'PAID', 'since shown', 'webhook'],
];
const LATENCIES =
  'Latencies are p50 / p99 in ms, since the block was there and since the node first told of it; webhook: since PAID.';

/** The targets for these figures. */
export function judgeIngest({ floors, catchUps, live }: IngestFigures): Target[] {
  const atLeast = (name: string, measured: number, least: number): Target => ({
    ...{ name, reach: `≥ ${least}`, measured, isReached: measured >= least },
  });
  const atMost = (name: string, measured: number, most: number): Target => ({
    ...{ name, reach: `≤ ${most}`, measured, isReached: measured <= most },
  });
  const [one] = catchUps;
  if (one?.isGrpc === true) {
    return catchUps.flatMap((row) => [
      atLeast(`caught up, blocks/s, ${showRow(row)}`, row.perSecond, row.latencyMs > 0 ? FAR_RATE : GRPC_RATE),
      atMost(`peak memory of the service, MB, ${showRow(row)}`, row.peakBytes / 1e6, GRPC_MEMORY_LIMIT_MB),
    ]);
  }
  const rate = one?.perSecond ?? NaN;
  return [
    atLeast('caught up, blocks/s', rate, 60),
    atLeast('caught up, of the floor', rate / floorPerSecond(floors), 0.35),
    atMost('peak memory of the service, MB', (one?.peakBytes ?? NaN) / 1e6, MEMORY_LIMIT_MB),
    ...catchUps.flatMap((row) => [
      atMost(`requests a block to the first node, catching up, ${showRow(row)}`, row.requests[0] ?? NaN, 0.3),
      ...(row.latencyMs > 0 ? [atLeast(`caught up, blocks/s, ${showRow(row)}`, row.perSecond, FAR_RATE)] : []),
    ]),
    ...live.flatMap(({ nodes, payEvery, requests, confirming, paid, webhook }) => {
      const where = `nodes: ${nodes}, a payment every ${payEvery} blocks`;
      return [
        atMost(`requests a block to the first node at the head, ${where}`, requests[0] ?? NaN, 2.5),
        atMost(
          `shown → CONFIRMING committed, p99 ms, ${where}`,
          quantile(confirming.sinceShown, 0.99),
          LATENCY_LIMIT_MS,
        ),
        atMost(`shown solid → PAID committed, p99 ms, ${where}`, quantile(paid.sinceShown, 0.99), LATENCY_LIMIT_MS),
        atMost(`PAID committed → first attempt, p99 ms, ${where}`, quantile(webhook, 0.99), LATENCY_LIMIT_MS),
      ];
    }),
  ];
}

/** Describes a row in words. */
export function showRow({ nodes, latencyMs, requestsPerSecond, isGrpc, transactions }: CatchUpPlan): string {
  const limit = requestsPerSecond === null ? '' : `, ${requestsPerSecond} requests/s`;
  const size = transactions === undefined ? '' : `, ${transactions} transactions a block`;
  return `${isGrpc === true ? 'gRPC, ' : ''}nodes: ${nodes}, ${latencyMs} ms${limit}${size}`;
}

/** Describes the result of a row on one line. */
export function showCaught({ blocks, perSecond, peakBytes, peakPssBytes, requests }: CatchUp): string {
  const peak = `${show(peakBytes / 1e6)} MB RSS, ${show(peakPssBytes / 1e6)} MB PSS`;
  return `${blocks} blocks, ${show(perSecond)} blocks/s, at most ${peak}, requests/block ${requests.map(show).join(' + ')}`;
}

/** Returns the blocks per second of the floor, over all its rounds. */
function floorPerSecond(floors: Floor[]): number {
  const blocks = floors.reduce((total, floor) => total + floor.blocks, 0);
  return (
    (blocks * 1000) / floors.reduce((total, { decodeMs, parseMs, hashMs }) => total + decodeMs + parseMs + hashMs, 0)
  );
}

export function showIngest(figures: IngestFigures): string {
  const { floors, catchUps, live, serverAlone } = figures;
  const floorRows = floors.map(({ blocks, decodeMs, parseMs, hashMs }, index) => [
    ...[`floor, round ${index + 1}`, (blocks * 1000) / (decodeMs + parseMs + hashMs)].map(show),
    ...[decodeMs, parseMs, hashMs].map((ms) => (ms / blocks).toFixed(2)),
  ]);
  const caught = catchUps.map((row) => {
    const { blocks, perSecond, peakBytes, peakPssBytes, payments, requests, cpu } = row;
    const peak = [peakBytes, peakPssBytes].map((bytes) => show(bytes / 1e6)).join(' / ');
    return [
      ...[showRow(row), blocks, perSecond, perSecond / floorPerSecond(floors), peak, payments].map(show),
      requests.map(show).join(' + '),
      [cpu.service, cpu.chainServer, cpu.postgres].map((ms) => ms.toFixed(1)).join(' / '),
    ];
  });
  const followed = live.map(({ nodes, blocks, payEvery, requests, confirming, paid, webhook }) => [
    ...[nodes, `${blocks} / ${payEvery}`, requests.map(show).join(' + ')],
    ...[confirming.sincePublished, confirming.sinceShown, paid.sincePublished, paid.sinceShown, webhook].map(
      showQuantiles,
    ),
  ]);
  const paths = [
    ...catchUps.map((row) => [`catching up, ${showRow(row)}`, row.paths] as const),
    ...live.map((of) => [`at the head, nodes: ${of.nodes}, a payment every ${of.payEvery}`, of.paths] as const),
  ];
  const pathRows = paths.flatMap(([what, of]) =>
    Object.entries(of).map(([path, count]) => [what, path, count.toFixed(3)]),
  );
  return [
    `The server alone gives away ${Math.round(serverAlone)} blocks/s.`,
    table(['', 'blocks/s', 'decode ms', 'JSON.parse ms', 'sha256 ms'], floorRows),
    table(
      [
        'from',
        'blocks',
        'blocks/s',
        'of floor',
        'peak MB: RSS / PSS',
        'paid',
        'requests/block',
        'CPU ms/block: service/server/rest',
      ],
      caught,
    ),
    ...(live.length === 0 ? [] : [table(HEAD_COLUMNS, followed), LATENCIES]),
    table(['the first node', 'path', 'requests/block'], pathRows),
  ].join('\n\n');
}

function show(value: number | string): string {
  if (typeof value === 'string') return value;
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) > 10 ? 0 : 2);
}

function showQuantiles(values: number[]): string {
  return `${Math.round(quantile(values, 0.5))} / ${Math.round(quantile(values, 0.99))}`;
}

/** Returns the smallest value that this share of the values doesn't exceed. */
function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}
