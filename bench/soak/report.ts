import type { FloodResult } from '../overload/flood.ts';
import { type Target, table } from '../targets.ts';

/** Bytes after a forced collection. `rss` is the resident memory of the process. */
export type Sample = { seconds: number; heapUsed: number; external: number; rss: number };
type Kind = 'heapUsed' | 'external' | 'rss';

/** Until then, caches and pools are still filling up. */
const WARM_UP_SHARE = 0.25;
const KINDS: { kind: Kind; name: string }[] = [
  { kind: 'heapUsed', name: 'heap' },
  { kind: 'external', name: 'outside the heap' },
  { kind: 'rss', name: 'resident' },
];
/** The allowed growth of the last quarter over the second one, which is noise of the garbage collector. */
const LIMIT = 1.1;

export function judgeSoak(samples: Sample[]): Target[] {
  return KINDS.filter(({ kind }) => kind !== 'external').map(({ kind, name }) => {
    const measured = median(share(samples, kind, 0.75, 1)) / median(share(samples, kind, 0.25, 0.5));
    const what = `${name}, median of the last quarter / of the second`;
    return { name: what, reach: `≤ ${LIMIT}`, measured, isReached: measured <= LIMIT };
  });
}

/** The tables in Markdown, as in docs/contributing/measurements/overload.md. */
export function showSoak(samples: Sample[], floods: FloodResult[]): string {
  const rows = KINDS.map(({ kind, name }) => {
    const quarters = [0, 1, 2, 3].map((quarter) => median(share(samples, kind, quarter / 4, (quarter + 1) / 4)));
    const { slope, error } = slopeOf(
      samples.filter(({ seconds }) => seconds >= WARM_UP_SHARE * lengthOf(samples)),
      kind,
    );
    const most = Math.max(...samples.map((sample) => sample[kind]));
    return [name, ...[...quarters, most].map(megabytes), `${perHour(slope)} ± ${perHour(error)}`];
  });
  const total = new Map<string, number>();
  for (const { statuses } of floods) {
    for (const [status, count] of Object.entries(statuses)) total.set(status, (total.get(status) ?? 0) + count);
  }
  const seconds = floods.reduce((sum, flood) => sum + flood.seconds, 0);
  const errors = floods.reduce((sum, flood) => sum + flood.errors, 0);
  const answers = [...total].map(([status, count]) => [status, count, (count / seconds).toFixed(0)]);
  return [
    table(['MB, after a collection', '1st quarter', '2nd', '3rd', '4th', 'most', 'MB an hour, after the first'], rows),
    table(['status', 'answers', 'a second'], [...answers, ['no answer', errors, (errors / seconds).toFixed(1)]]),
  ].join('\n\n');
}

function lengthOf(samples: Sample[]): number {
  return samples.at(-1)?.seconds ?? 0;
}

function share(samples: Sample[], kind: Kind, from: number, to: number): number[] {
  const length = lengthOf(samples);
  return samples
    .filter(({ seconds }) => seconds >= from * length && seconds <= to * length)
    .map((sample) => sample[kind]);
}

/** Returns the growth in bytes per second by least squares, and its standard error. */
function slopeOf(samples: Sample[], kind: Kind): { slope: number; error: number } {
  const count = samples.length;
  const meanX = samples.reduce((sum, { seconds }) => sum + seconds, 0) / count;
  const meanY = samples.reduce((sum, sample) => sum + sample[kind], 0) / count;
  const spread = samples.reduce((sum, { seconds }) => sum + (seconds - meanX) ** 2, 0);
  const slope = samples.reduce((sum, sample) => sum + (sample.seconds - meanX) * (sample[kind] - meanY), 0) / spread;
  const rest = samples.reduce((sum, s) => sum + (s[kind] - meanY - slope * (s.seconds - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (count - 2) / spread) };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

function perHour(bytesPerSecond: number): string {
  return ((bytesPerSecond * 3600) / 1e6).toFixed(1);
}
