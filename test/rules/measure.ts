import { posix, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { importCycles, loadedFrom, reachedFrom, twoWayPairs } from './import-graph.ts';
import type { Flows } from './measure-flows.ts';
import { signOffList } from './sign-off-list.ts';
import { readSourceTree, type SourceFile } from './source-tree.ts';

/** Calculates the measures of `src/` that `npm run measure` prints. Unit tests are excluded. */
export function measureSource(files: readonly SourceFile[]) {
  const lengths = files.map(({ lines }) => lines).sort((a, b) => a - b);
  // By nearest rank.
  const quantile = (share: number) => lengths[Math.ceil(share * lengths.length) - 1] ?? 0;
  return {
    files: files.length,
    lines: sumOfLines(files),
    parts: Object.fromEntries(PARTS.map((part) => [part, sizeOf(files.filter(({ path }) => path.startsWith(part)))])),
    fileLines: { median: quantile(0.5), p90: quantile(0.9), max: quantile(1) },
    importCycles: importCycles(files),
    twoWayPairs: { fullDepth: twoWayPairs(files), topLevel: twoWayPairs(files, 2) },
    largestFlatFolder: largestFlatFolder(files),
    takenOnce: takenOnce(files),
    // main.ts reads the settings of a service process and starts service.ts. The sandbox starts only service.ts.
    importedByService: {
      fromMain: sizeOf(reachedFrom('src/server/main.ts', files)),
      fromService: sizeOf(reachedFrom('src/server/service.ts', files)),
    },
    audit: {
      toSignOff: sizeOf(files.filter(({ path }) => signOffList().includes(path))),
      reached: sizeOf(loadedFrom([...signOffList(), ...DELIVERY], files)),
    },
    loadedByRole: Object.fromEntries(
      Object.entries(ROLES).map(([roles, entries]) => [roles, sizeOf(loadedFrom(entries, files))]),
    ),
  };
}

/** What delivers events, beside the files to sign off. */
const DELIVERY = ['src/core/webhooks/dispatcher.ts'];

const role = (name: string) => ['src/server/main.ts', 'src/server/service.ts', `src/server/start-${name}.ts`];
/** Where a process starts, by its roles. */
export const ROLES = {
  watcher: role('watchers'),
  webhooks: role('webhooks'),
  api: role('api'),
  'api, watcher, webhooks': ['watchers', 'webhooks', 'api'].flatMap(role),
  console: role('console'),
};

const PARTS = [
  'packages/tron/',
  'packages/devnet/',
  'src/core/',
  'src/faces/',
  'src/server/',
  'src/developer/',
  'src/cli/',
];

type Measures = ReturnType<typeof measureSource> & { flows?: Flows };

function sizeOf(files: readonly SourceFile[]): { files: number; lines: number } {
  return { files: files.length, lines: sumOfLines(files) };
}

function sumOfLines(files: readonly SourceFile[]): number {
  return files.reduce((sum, { lines }) => sum + lines, 0);
}

/** Counts the exported functions, and those that only one other file imports. */
function takenOnce(files: readonly SourceFile[]): { functions: number; once: number } {
  const takers = (path: string, name: string) =>
    files.filter(({ imports }) =>
      imports.some(({ to, names }) => to === path && (names === null || names.includes(name))),
    ).length;
  const counts = files.flatMap(({ path, functions }) => functions.map((name) => takers(path, name)));
  return { functions: counts.length, once: counts.filter((count) => count === 1).length };
}

/** Counts only files directly in a folder, not in its subfolders. */
function largestFlatFolder(files: readonly SourceFile[]): { folder: string; files: number } {
  const counts = new Map<string, number>();
  for (const { path } of files) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
  const [folder, count] = [...counts].reduce((most, next) => (next[1] > most[1] ? next : most), ['', 0]);
  return { folder, files: count };
}

/** Prints one row for each measure, with the counted names below. */
function toTable(measures: Measures): string {
  const { fileLines, twoWayPairs, largestFlatFolder, importedByService, takenOnce } = measures;
  const size = ({ files, lines }: { files: number; lines: number }) => `${lines} in ${files} files`;
  const rows: [string, string | number, string[]?][] = [
    ['source files', measures.files],
    ['lines', measures.lines],
    ...Object.entries(measures.parts).map(([part, found]) => [`  of ${part}`, size(found)] as [string, string]),
    ['lines of a file: median, p90, max', `${fileLines.median}, ${fileLines.p90}, ${fileLines.max}`],
    ['import cycles', measures.importCycles.length, measures.importCycles.map((cycle) => cycle.join(' '))],
    ['two-way folder pairs', twoWayPairs.fullDepth.length, twoWayPairs.fullDepth],
    ['two-way pairs at the top level', twoWayPairs.topLevel.length, twoWayPairs.topLevel],
    ['largest flat folder', `${largestFlatFolder.files} (${largestFlatFolder.folder})`],
    [
      'exported functions taken by one file',
      `${Math.round((100 * takenOnce.once) / takenOnce.functions)} % of ${takenOnce.functions}`,
    ],
    ['lines a running service imports', size(importedByService.fromMain)],
    ['  of them by service.ts', size(importedByService.fromService)],
    ['lines to sign off (audit guide)', size(measures.audit.toSignOff)],
    ['  with what they and deliveries import', size(measures.audit.reached)],
    ...Object.entries(measures.loadedByRole).map(
      ([roles, found]) => [`lines loaded: ${roles}`, size(found)] as [string, string],
    ),
    ...Object.entries(measures.flows ?? {}).map(
      ([flow, files]) => [`files of the flow: ${flow}`, files.length] as [string, number],
    ),
  ];
  return rows
    .flatMap(([title, value, names = []]) => [`${title.padEnd(36)} ${value}`, ...names.map((name) => `    ${name}`)])
    .join('\n');
}

/** Fails if two folders import each other. Used by `npm run check`. */
function checkFolders(root: string): void {
  const pairs = twoWayPairs(readSourceTree(root));
  if (pairs.length === 0) return;
  process.stderr.write(`${pairs.join('\n')}\nTwo folders that import each other are one: move what both need.\n`);
  process.exitCode = 1;
}

if (process.argv[1] === import.meta.filename) {
  const boolean = { type: 'boolean', default: false } as const;
  const root = { type: 'string', default: resolve(import.meta.dirname, '../..') } as const;
  const { values } = parseArgs({ options: { json: boolean, flows: boolean, check: boolean, root } });
  if (values.check) checkFolders(values.root);
  else await print(values);
}

async function print({ json, flows, root }: { json: boolean; flows: boolean; root: string }): Promise<void> {
  const measures = {
    ...measureSource(readSourceTree(root)),
    // Takes long, and only works in this checkout.
    ...(flows ? { flows: await (await import('./measure-flows.ts')).measureFlows() } : {}),
  };
  process.stdout.write(`${json ? JSON.stringify(measures, null, 2) : toTable(measures)}\n`);
}
