import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { whyNoStrace } from '../processes/wal-trace.ts';
import { copyCheckout, copyCopy, copyPackages, linkProductionPackages, newFolder } from '../support/checkout-copy.ts';
import { longTest, someCases } from '../support/some-cases.ts';
import { newDirectory, runProcess } from './run-cli.ts';

const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;
const VERSION = 'src/core/runtime/package.ts';

/** The files that --version and --help load, and some more of each kind. */
const SOURCES = [
  'src/faces/checkout/words',
  'src/cli',
  'src/developer/trigger',
  'packages/devnet/src',
  'packages/tron/src',
  'src/core/domain',
  'src/faces/operator/input',
  'src/core/runtime',
  'src/server/service.ts',
];

let bare: string;
let built: string;
beforeAll(async () => {
  bare = await copyCheckout(SOURCES);
  built = await copyCopy(bare);
  await promisify(execFile)('npm', ['run', '--silent', 'build'], { cwd: built });
});

const commandOf = (checkout: string) => join(checkout, 'bin/quittance.js');
const runVersion = (checkout: string, env: NodeJS.ProcessEnv = {}) =>
  runProcess(['--version'], { command: commandOf(checkout), env });

/** Changes a source so that `quittance --version` prints something else. */
function change(checkout: string, from: string, to: string): void {
  const path = join(checkout, VERSION);
  const text = readFileSync(path, 'utf8');
  expect(text).toContain(from);
  writeFileSync(path, text.replace(from, to));
}

/** Returns every file of dist/ with its content. */
function buildOf(checkout: string): Map<string, string> {
  const names = filesIn(join(checkout, 'dist')).filter((name) => /\.js(?:on)?$/.test(name));
  return new Map(names.sort().map((name) => [name, readFileSync(join(checkout, 'dist', name), 'utf8')]));
}

function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
}

describe('a checkout runs its sources as they are', () => {
  test('after it built them, which a second start finds done', async () => {
    const checkout = await copyCopy(bare);
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    expect(buildOf(checkout)).toEqual(buildOf(built));
    const inodes = () =>
      filesIn(join(checkout, 'dist')).map((name) => [name, statSync(join(checkout, 'dist', name)).ino]);
    const before = inodes();
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    expect(inodes()).toEqual(before);
  });

  test.each(
    someCases(
      [
        ['at the same time as before', 0],
        ['an hour before it was built', 3600],
      ],
      2,
    ),
  )('when one was changed that is as long as it was and was written %s', async (_, agoSeconds) => {
    const checkout = await copyCopy(built);
    const { size, atimeMs, mtimeMs } = statSync(join(checkout, VERSION));
    change(checkout, 'String(version)', "'other-version'");
    utimesSync(join(checkout, VERSION), atimeMs / 1000, mtimeMs / 1000 - agoSeconds);
    expect(statSync(join(checkout, VERSION)).size).toBe(size);
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stdout: 'other-version\n', stderr: '' });
  });

  test('when one is gone, whose build goes too', async () => {
    const checkout = await copyCopy(built);
    writeFileSync(join(checkout, 'src/cli/former.ts'), 'export const former: number = 1;\n');
    await runVersion(checkout);
    expect(buildOf(checkout).get('cli/former.js')).toBe('export const former         = 1;\n');
    rmSync(join(checkout, 'src/cli/former.ts'));
    await runVersion(checkout);
    expect(buildOf(checkout)).toEqual(buildOf(built));
  });

  longTest('when the build was torn, edited, or lost what it says of itself', async () => {
    const checkout = await copyCopy(built);
    const dist = (name: string) => join(checkout, 'dist', name);
    writeFileSync(dist('core/runtime/package.js'), '');
    writeFileSync(dist('cli/main.js'), 'export const main = () => 7;\n');
    writeFileSync(dist('faces/checkout/words/fr.json'), '{}');
    rmSync(dist('server/service.js'));
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    expect(buildOf(checkout)).toEqual(buildOf(built));
    writeFileSync(dist('built-from'), readFileSync(dist('built-from'), 'utf8').slice(0, 1000));
    writeFileSync(dist('cli/stray.js'), '');
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    expect(buildOf(checkout)).toEqual(buildOf(built));
  });

  longTest('when several start at once, with much to build and with little', async () => {
    const checkout = await copyCopy(built);
    const startThree = () => Promise.all([1, 2, 3].map(() => runVersion(checkout)));
    await rm(join(checkout, 'dist/core/domain'), { recursive: true });
    for (const { code, stderr } of await startThree()) expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(buildOf(checkout)).toEqual(buildOf(built));
    change(checkout, 'String(version)', "'other-version'");
    expect(new Set((await startThree()).map(({ stdout }) => stdout))).toEqual(new Set(['other-version\n']));
  });

  longTest('after a build that was killed in the middle, of which nothing is left', async () => {
    const checkout = await copyCopy(bare);
    const half = buildOf(built).size / 2;
    const count = () => filesIn(join(checkout, 'dist')).length;
    do {
      await rm(join(checkout, 'dist'), { recursive: true, force: true });
      const child = spawn(process.execPath, [commandOf(checkout), '--version'], { stdio: 'ignore' });
      while (child.exitCode === null && count() < half) await setImmediate();
      child.kill('SIGKILL');
      if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
      // If the check comes too late, start over.
    } while (existsSync(join(checkout, 'dist/built-from')));
    // A draft left by an earlier process that was killed between writing and renaming.
    const draft = join(checkout, 'dist/server/main.js.99.draft');
    writeFileSync(draft, 'half of');
    utimesSync(draft, 1, 1);
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    expect(buildOf(checkout)).toEqual(buildOf(built));
    expect(existsSync(draft)).toBe(false);
  });

  test('and a stack trace names the line and the column of the source', async () => {
    const checkout = await copyCopy(built);
    change(checkout, 'return String(version)', 'throw new Error(version as string)');
    const lines = readFileSync(join(checkout, VERSION), 'utf8').split('\n');
    const line = lines.findIndex((text) => text.includes('throw new Error(version')) + 1;
    const { stderr } = await runVersion(checkout);
    expect(stderr).toContain(`runtime/package.js:${line}:${(lines[line - 1] ?? '').indexOf('new Error') + 1}`);
  });
});

describe('a checkout that cannot build says why and what to do, and runs nothing older', () => {
  test.each(
    someCases(
      [
        ['is no TypeScript', 'String(version', /src\/core\/runtime\/package\.ts\(\d+,\d+\): '\)' expected\./],
        [
          'needs more than that its types are erased',
          'enum A { B }',
          /src\/core\/runtime\/package\.ts\(\d+,3\): .*cannot be erased/,
        ],
      ],
      2,
    ),
  )('a source that %s', async (_, text, message) => {
    const checkout = await copyCopy(built);
    change(checkout, 'return String(version)', text);
    expect(await runVersion(checkout)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) });
  });

  test('a catalogue of words that is no JSON', async () => {
    const checkout = await copyCopy(built);
    const path = join(checkout, 'src/faces/checkout/words/fr.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('",\n', '"\n'));
    const stderr = expect.stringMatching(/src\/faces\/checkout\/words\/fr\.json: .*JSON at position \d+/);
    expect(await runVersion(checkout)).toMatchObject({ code: 1, stdout: '', stderr });
  });

  test('packages that build and are not installed, which what was built does not need', async () => {
    const checkout = await copyCopy(built);
    await rm(join(checkout, 'node_modules'));
    await linkProductionPackages(join(checkout, 'node_modules'));
    expect(await runVersion(checkout)).toMatchObject({ code: 0, stderr: '' });
    change(checkout, 'String(version)', "'other-version'");
    const expected = {
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/npm ci --include=dev.*npm run build/),
    };
    expect(await runVersion(checkout)).toMatchObject(expected);
    await rm(join(checkout, 'dist'), { recursive: true });
    expect(await runVersion(checkout)).toMatchObject(expected);
  });

  test.runIf(IS_ROOT && inject('everyCase'))(
    'a build of another user, which runs while it is fresh (needs root to become another user)',
    async () => {
      const checkout = await copyCopy(built);
      await rm(join(checkout, 'node_modules'));
      // Links lead into this checkout, which may be below a private home directory.
      await copyPackages(join(checkout, 'node_modules'), ['commander', 'ts-blank-space', 'typescript']);
      const asNobody = () =>
        promisify(execFile)(process.execPath, [commandOf(checkout), '--version'], {
          uid: NOBODY,
          gid: NOBODY,
          cwd: '/',
        });
      const { stdout } = await asNobody();
      change(checkout, 'String(version)', "'other-version'");
      await expect(asNobody()).rejects.toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(
          /uid 65534 may not .*dist.*\(EACCES\): run "npm run build" as the user who owns it/,
        ),
      });
      expect(await runVersion(checkout)).toMatchObject({ stdout: 'other-version\n' });
      expect((await asNobody()).stdout).not.toBe(stdout);
    },
  );
});

describe('of what others left among the temporary files', () => {
  test('no package is run that lies above a checkout there, which lacks its own', async () => {
    const above = await newFolder();
    const checkout = join(above, 'checkout');
    await cp(built, checkout, { recursive: true, verbatimSymlinks: true });
    await rm(join(checkout, 'node_modules'));
    await linkProductionPackages(join(checkout, 'node_modules'));
    for (const name of ['ts-blank-space', 'typescript']) {
      const planted = join(above, 'node_modules', name);
      await mkdir(planted, { recursive: true });
      writeFileSync(join(planted, 'package.json'), JSON.stringify({ name, main: './index.cjs' }));
      writeFileSync(join(planted, 'index.cjs'), "process.stdout.write('code of nobody\\n');");
    }
    change(checkout, 'String(version)', "'other-version'");
    const refused = { code: 1, stdout: '', stderr: expect.stringContaining('packages that build are not installed') };
    expect(await runVersion(checkout)).toMatchObject(refused);
  });

  longTest('no file is run: a start looks for none, and leaves none', async () => {
    const checkout = await copyCopy(bare);
    const temporary = newDirectory();
    const expected = await runVersion(checkout, { TMPDIR: temporary });
    expect(expected).toMatchObject({ code: 0, stderr: '' });
    // Anyone who can read the release can guess the names before the first start; here the start reveals them.
    const planted = filesIn(temporary);
    const poison = "process.stdout.write('code of nobody\\n');";
    for (const name of planted) writeFileSync(join(temporary, name), JSON.stringify({ code: poison, map: '' }));
    expect(await runVersion(checkout, { TMPDIR: temporary })).toMatchObject(expected);
    expect(planted).toEqual([]);
  });

  test('nothing is read, not even whether it is there', async ({ skip }) => {
    const reason = whyNoStrace();
    if (reason !== null) skip(reason);
    const checkout = await copyCopy(built);
    change(checkout, 'String(version)', "'other-version'");
    const temporary = newDirectory();
    const trace = join(newDirectory(), 'trace');
    await mkdir(join(temporary, `tsx-${process.geteuid?.()}`));
    for (const command of ['--version', 'project']) {
      const args = ['-f', '-e', 'trace=%file', '-o', trace, process.execPath, commandOf(checkout), command];
      spawnSync('strace', args, { env: { ...process.env, TMPDIR: temporary } });
      const lines = readFileSync(trace, 'utf8').split('\n');
      expect(lines.some((line) => line.includes('dist/core/runtime/package.js'))).toBe(true);
      expect(lines.filter((line) => line.includes(`"${temporary}`))).toEqual([]);
    }
  });
});
