import { parseArgs } from 'node:util';
import { type MutantResult, runMutants } from './run-mutants.ts';
import { reasonOf } from './survivors.ts';

/**
 * `npm run mutation` changes the code that decides about money in one place after the other, and expects a failing test each time. It
 * prints the share of detected mutants by file and group, and the undetected ones; a group below 85 % fails the run. With paths, as in
 * `npm run mutation -- packages/tron/src/usdt.ts`, only matching files are changed. Results for unchanged code and tests are reused from
 * .mutation/, unless `--force` is given.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { force: { type: 'boolean', default: false } },
});
const LEAST_PERCENT = 85;

/** Each group must reach the limit by itself. A file may count in two of them. */
const GROUPS: Readonly<Record<string, RegExp>> = {
  domain: /^src\/core\/domain\//,
  tron: /^packages\/tron\/src\//,
  signing:
    /^(?:src\/core\/(?:webhooks\/sign|runtime\/key-ring|domain\/receipt\/[a-z-]*)|packages\/tron\/src\/signature)\.ts$/,
  'target check': /^src\/core\/webhooks\/target\.ts$/,
  idempotency:
    /^src\/(?:core\/(?:domain\/invoice-options|payments\/create-invoice|store\/ledger\/invoices)|faces\/(?:api\/read-create-input|web\/json-body))\.ts$/,
};

const startedMs = performance.now();
const mutants = await runMutants(positionals, values.force);
const survivors = mutants.filter(isMissed);

for (const file of new Set(mutants.map(({ fileName }) => fileName).sort())) {
  const ofFile = mutants.filter(({ fileName }) => fileName === file);
  print(file, ofFile);
}
console.log();
for (const [name, pattern] of Object.entries(GROUPS)) {
  const ofGroup = mutants.filter(({ fileName }) => pattern.test(fileName));
  if (ofGroup.length === 0) continue;
  print(name, ofGroup);
  if (percentOf(ofGroup) < LEAST_PERCENT) {
    console.log(`${name} is below ${LEAST_PERCENT} %`);
    process.exitCode = 1;
  }
}

const unexplained = survivors.filter((mutant) => reasonOf(mutant) === null);
for (const { fileName, location, mutatorName, replacement } of unexplained) {
  console.log(
    `no test notices, and no reason is given: ${fileName}:${location.start.line} ${mutatorName} → ${replacement}`,
  );
}
const minutes = ((performance.now() - startedMs) / 60_000).toFixed(1);
console.log(
  `\n${mutants.length} changes in ${minutes} min: ${survivors.length} were not noticed, ${unexplained.length} of them without a reason in test/mutation/survivors.ts`,
);

function isMissed({ status }: MutantResult): boolean {
  return status === 'Survived' || status === 'NoCoverage';
}

function percentOf(some: readonly MutantResult[]): number {
  return 100 - (some.filter(isMissed).length * 100) / some.length;
}

function print(name: string, some: readonly MutantResult[]): void {
  const missed = some.filter(isMissed).length;
  console.log(`${percentOf(some).toFixed(1).padStart(5)} %  ${name}: ${some.length - missed} of ${some.length}`);
}
