import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { Stryker } from '@stryker-mutator/core';

/** One change, and what the tests said of it. `fileName` begins with `src/`, `location` counts lines and columns from 1. */
export type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number];

type Suite = { name: 'pure' | 'database'; places: readonly string[] };

/** Most of what is changed needs no database, so that its tests take milliseconds; what does is changed apart, with its own tests. */
const SUITES: readonly Suite[] = [
  {
    name: 'pure',
    places: [
      'packages/tron/src/',
      'src/core/domain/',
      'src/core/webhooks/sign.ts',
      'src/core/webhooks/target.ts',
      'src/core/webhooks/target-connector.ts',
      'src/core/webhooks/ip-ranges.ts',
      'src/core/runtime/key-ring.ts',
      'src/faces/api/read-create-input.ts',
      'src/faces/web/json-body.ts',
    ],
  },
  { name: 'database', places: ['src/core/payments/create-invoice.ts', 'src/core/store/ledger/invoices.ts'] },
];

/** Changes the files whose path begins with one of `paths` (all if there are none), and runs the tests that reach each change. */
export async function runMutants(paths: readonly string[], force: boolean): Promise<MutantResult[]> {
  const results: MutantResult[] = [];
  for (const { name, places } of SUITES) {
    const files = places.flatMap(sourcesIn);
    const chosen = files.filter((file) => paths.length === 0 || paths.some((path) => file.startsWith(path)));
    if (chosen.length > 0) results.push(...(await changeFiles(name, chosen, force)));
  }
  return results;
}

function sourcesIn(place: string): string[] {
  if (!place.endsWith('/')) return [place];
  const names = readdirSync(place, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => /(?<!\.test)\.ts$/.test(name)).map((name) => place + name);
}

async function changeFiles(suite: Suite['name'], files: string[], force: boolean): Promise<MutantResult[]> {
  const incrementalFile = `.mutation/${suite}.json`;
  if (existsSync(incrementalFile)) forgetMissed(incrementalFile);
  const stryker = new Stryker({
    mutate: files,
    testRunner: 'vitest',
    plugins: [import.meta.resolve('@stryker-mutator/vitest-runner')],
    // The tests with a database are named one by one, and one of them finds the statements by reading a directory.
    vitest: { configFile: `test/mutation/${suite}.vitest.config.ts`, related: suite !== 'database' },
    // The tests of a change run in a copy of the project, for which this is enough.
    ignorePatterns: ['bench', 'bin', 'deploy', 'dist', 'docs', 'packages/sdk', '.quittance', '.screenshots'],
    tempDirName: '.mutation/copy',
    incremental: true,
    incrementalFile,
    force,
    // Two would share one machine's cores with all else that runs on it; a night has hours.
    concurrency: 1,
    reporters: ['progress-append-only'],
    allowConsoleColors: false,
    packageManager: 'npm',
  });
  const results = await stryker.runMutationTest();
  // What former runs found out about other files comes along.
  return results
    .map((result) => ({ ...result, fileName: relative(process.cwd(), result.fileName) }))
    .filter(({ fileName }) => files.includes(fileName));
}

/** Stryker would take over that nothing noticed a change of a constant, although there may be a test for it by now. */
function forgetMissed(incrementalFile: string): void {
  const report = JSON.parse(readFileSync(incrementalFile, 'utf8')) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  for (const file of Object.values(report.files)) {
    file.mutants = file.mutants.filter(({ status }) => status !== 'Survived' && status !== 'NoCoverage');
  }
  writeFileSync(incrementalFile, JSON.stringify(report));
}
