import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { Stryker } from '@stryker-mutator/core';

/** A mutant and the tests' verdict. `fileName` begins with `src/`; `location` counts lines and columns from 1. */
export type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number];

type Suite = { name: 'pure' | 'database'; places: readonly string[] };

/** Most code needs no database, so its tests take milliseconds. Code that needs one is mutated separately, with its own tests. */
const SUITES: readonly Suite[] = [
  {
    name: 'pure',
    places: [
      'packages/tron/src/',
      'src/core/domain/',
      'src/core/webhooks/sign.ts',
      'src/core/webhooks/target.ts',
      'src/core/runtime/key-ring.ts',
      'src/faces/api/read-create-input.ts',
      'src/faces/web/json-body.ts',
    ],
  },
  { name: 'database', places: ['src/core/payments/create-invoice.ts', 'src/core/store/ledger/invoices.ts'] },
];

/** Mutates the files whose path begins with one of `paths` (all if there are none), and runs the tests that reach each mutant. */
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
    // Tests with a database are listed one by one, and one of them finds the statements by reading a directory.
    vitest: { configFile: `test/mutation/${suite}.vitest.config.ts`, related: suite !== 'database' },
    // A mutant's tests run in a copy of the project that needs only the rest.
    ignorePatterns: ['bench', 'bin', 'deploy', 'dist', 'docs', 'packages/sdk', '.quittance', '.screenshots'],
    tempDirName: '.mutation/copy',
    incremental: true,
    incrementalFile,
    force,
    // A second one would compete for the machine's cores; a night has enough hours.
    concurrency: 1,
    reporters: ['progress-append-only'],
    allowConsoleColors: false,
    packageManager: 'npm',
  });
  const results = await stryker.runMutationTest();
  // The results include earlier ones about other files.
  return results
    .map((result) => ({ ...result, fileName: relative(process.cwd(), result.fileName) }))
    .filter(({ fileName }) => files.includes(fileName));
}

/** Otherwise Stryker would reuse the result that a constant's change is undetected, although a test for it may exist by now. */
function forgetMissed(incrementalFile: string): void {
  const report = JSON.parse(readFileSync(incrementalFile, 'utf8')) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  for (const file of Object.values(report.files)) {
    file.mutants = file.mutants.filter(({ status }) => status !== 'Survived' && status !== 'NoCoverage');
  }
  writeFileSync(incrementalFile, JSON.stringify(report));
}
