import { createRandom } from '../engine/random.ts';

/** Kinds of trouble, each of which can be left out to find the smallest world that fails. */
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

/** What a simulation does. The same plan does the same again, but for the order of what PostgreSQL runs at the same time. */
export type Plan = { seed: number; minutes: number; troubles: ReadonlySet<Trouble> };

/** The shape of a world, which follows from the seed. */
export type Shape = {
  /** Which roles each process has. */
  processes: readonly (readonly Role[])[];
  nodeCount: number;
  /** How each node is asked, by JSON where it is absent; without poisons all are asked by JSON. */
  languages: readonly Language[];
  agreement: number;
  producers: number;
  /** Of the chain, and by that the rhythm of everything. The main network's is 3,000. */
  slotMs: number;
};

export type Role = 'api' | 'watcher' | 'webhooks';

/** `twin`: by JSON, and by gRPC for what JSON hides. */
type Language = 'json' | 'twin' | 'grpc';

/** One operator that speaks JSON alone is held up by a poisoned block until somebody lets it pass: docs/explained/chain-truth.md says so. */
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

/** Slower chains cost less, and are as full of troubles; the main network's rhythm is among them. */
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

/** `12 60 crash,forks`: a plan as a line of `seeds.txt`; without the last part all troubles. */
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
