import { createRandom } from '../engine/random.ts';

/** Kinds of trouble. Each can be left out, to find the smallest failing world. */
const TROUBLES = [
  'crash',
  'pause',
  'database',
  'outage',
  'clock',
  'forks',
  'producers',
  'nodes',
  'lies',
  'receivers',
  'operators',
  'poisons',
  'thieves',
] as const;

export type Trouble = (typeof TROUBLES)[number];

/** The input of a simulation. The same plan repeats the same events, except for the order of concurrent work in PostgreSQL. */
export type Plan = { seed: number; minutes: number; troubles: ReadonlySet<Trouble> };

/** The shape of a world, which follows from the seed. */
export type Shape = {
  /** The roles of each process. */
  processes: readonly (readonly Role[])[];
  nodeCount: number;
  /** The API of each node, JSON if absent. Without poisons, all use JSON. */
  languages: readonly Language[];
  agreement: number;
  producers: number;
  /** The chain's slot, which also sets the pace of everything else. The main network's is 3,000. */
  slotMs: number;
};

export type Role = 'api' | 'watcher' | 'webhooks';

/** `twin`: JSON, and gRPC for what JSON hides. */
type Language = 'json' | 'twin' | 'grpc';

/** A single operator with only JSON is held up by a poisoned block until a person lets it pass; see docs/explained/chain-truth.md. */
const LANGUAGES_ALONE: readonly Language[] = ['grpc', 'grpc', 'twin'];
const LANGUAGES: readonly Language[] = ['json', 'json', 'twin', 'grpc'];

const ALL_IN_ONE: readonly Role[] = ['api', 'watcher', 'webhooks'];
const LAYOUTS: readonly Shape['processes'][] = [
  [ALL_IN_ONE],
  [ALL_IN_ONE],
  [['api'], ['watcher'], ['webhooks']],
  [ALL_IN_ONE, ALL_IN_ONE],
  [['api'], ['api'], ['watcher'], ['watcher'], ['webhooks'], ['webhooks']],
];

/** Slower chains cost less and have as many troubles. The main network's interval is among them. */
const SLOTS_MS = [3000, 15_000, 30_000, 30_000, 30_000, 60_000, 60_000, 60_000, 60_000, 60_000] as const;

export function shapeOf(seed: number): Shape {
  const random = createRandom(seed ^ 0x5eed);
  const nodeCount = 1 + random.below(3);
  const shape = {
    processes: random.pick(LAYOUTS),
    nodeCount,
    agreement: Math.min(2, nodeCount),
    producers: random.pick([5, 5, 7, 27]),
    slotMs: random.pick(SLOTS_MS),
  };
  const languages = nodeCount === 1 ? LANGUAGES_ALONE : LANGUAGES;
  return { ...shape, languages: Array.from({ length: nodeCount }, () => random.pick(languages)) };
}

/** Parses a plan from a line of `seeds.txt` such as `12 60 crash,forks`; without the last part it has all troubles. */
export function parsePlan(line: string): Plan {
  const [seed = '', minutes = '60', troubles = TROUBLES.join()] = line.trim().split(/\s+/);
  const chosen = troubles === 'none' ? [] : troubles.split(',');
  const unknown = chosen.filter((name) => !(TROUBLES as readonly string[]).includes(name));
  if (!/^\d+$/.test(seed) || !/^\d+$/.test(minutes) || unknown.length > 0) throw new Error(`not a plan: ${line}`);
  return { seed: Number(seed), minutes: Number(minutes), troubles: new Set(chosen as Trouble[]) };
}

export function formatPlan({ seed, minutes, troubles }: Plan): string {
  const names = TROUBLES.filter((name) => troubles.has(name));
  const shown = names.length === TROUBLES.length ? [] : [names.length === 0 ? 'none' : names.join()];
  return [seed, minutes, ...shown].join(' ');
}
