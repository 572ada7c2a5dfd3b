import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { longTest } from '../support/some-cases.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);
const IS_ROOT = process.getuid?.() === 0;

/** Creates a checkout with the files needed for installing, and test/ with a lock file for one small package. */
async function makeCheckout() {
  const root = await mkdtemp(join(tmpdir(), 'quittance-test-packages-'));
  onTestFinished(() => rm(root, { recursive: true }));
  await chmod(root, 0o755);
  const tests = join(root, 'test');
  await mkdir(tests);
  await cp(join(ROOT, 'build'), join(root, 'build'), { recursive: true });
  await writeFile(join(root, 'package.json'), '{"type":"module"}\n');
  await copyFile(join(ROOT, 'test/.npmrc'), join(tests, '.npmrc'));
  return { root, tests };
}

/** Creates a version of the package, and a lock file in test/ that names it. Needs no network, because the package is a file. */
async function lockVersion({ root, tests }: Awaited<ReturnType<typeof makeCheckout>>, version: string): Promise<void> {
  const source = join(root, `tiny-${version}`);
  await mkdir(source);
  await writeFile(join(source, 'package.json'), JSON.stringify({ name: 'tiny', version }));
  await run('npm', ['pack', '--silent', source], { cwd: root });
  const file = `file:${join(root, `tiny-${version}.tgz`)}`;
  const fresh = await mkdtemp(join(root, 'lock-'));
  await writeFile(join(fresh, 'package.json'), JSON.stringify({ name: 'tests', dependencies: { tiny: file } }));
  await run('npm', ['install', '--package-lock-only', '--silent'], { cwd: fresh });
  for (const name of ['package.json', 'package-lock.json']) await copyFile(join(fresh, name), join(tests, name));
}

function install(root: string, options: { uid?: number; env?: Record<string, string> } = {}) {
  const { uid, env } = options;
  const result = run(process.execPath, [join(root, 'build/test-packages.js')], {
    cwd: root,
    env: { ...process.env, ...env },
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  return result.then(
    ({ stderr }) => ({ code: 0, stderr }),
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
  );
}

async function installedVersion(tests: string): Promise<string> {
  return JSON.parse(await readFile(join(tests, 'node_modules/tiny/package.json'), 'utf8')).version;
}

const LEFT = ['.npmrc', 'node_modules', 'package-lock.json', 'package.json'];

longTest('what the lock of the tests names is installed once, and anew when the lock changes', async () => {
  const checkout = await makeCheckout();
  const { root, tests } = checkout;
  await lockVersion(checkout, '1.0.0');
  expect(await install(root)).toMatchObject({ code: 0, stderr: expect.stringContaining('Installing') });
  expect(await installedVersion(tests)).toBe('1.0.0');
  const before = await stat(join(tests, 'node_modules'));
  expect(await install(root)).toEqual({ code: 0, stderr: '' });
  expect((await stat(join(tests, 'node_modules'))).ino).toBe(before.ino);
  await lockVersion(checkout, '2.0.0');
  expect((await install(root)).code).toBe(0);
  expect(await installedVersion(tests)).toBe('2.0.0');
  expect((await readdir(tests)).sort()).toEqual(LEFT);
});

longTest('what npm ci installed by hand is enough', async () => {
  const checkout = await makeCheckout();
  await lockVersion(checkout, '1.0.0');
  await run('npm', ['ci', '--silent', '--prefix', 'test'], { cwd: checkout.root });
  expect(await install(checkout.root)).toEqual({ code: 0, stderr: '' });
});

longTest('runs that begin at once each find all of it, and leave nothing else', async () => {
  const checkout = await makeCheckout();
  await lockVersion(checkout, '1.0.0');
  const results = await Promise.all([install(checkout.root), install(checkout.root), install(checkout.root)]);
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(await installedVersion(checkout.tests)).toBe('1.0.0');
  expect((await readdir(checkout.tests)).sort()).toEqual(LEFT);
});

longTest('a registry that does not answer is an error that says what to do, and what was installed stays', async () => {
  const checkout = await makeCheckout();
  const { root, tests } = checkout;
  await lockVersion(checkout, '1.0.0');
  await install(root);
  const integrity = `sha512-${Buffer.alloc(64).toString('base64')}`;
  const packages = { '': { dependencies: { tiny: '3.0.0' } }, 'node_modules/tiny': { version: '3.0.0', integrity } };
  await writeFile(join(tests, 'package.json'), JSON.stringify({ dependencies: { tiny: '3.0.0' } }));
  await writeFile(join(tests, 'package-lock.json'), JSON.stringify({ lockfileVersion: 3, requires: true, packages }));
  const env = {
    npm_config_registry: 'http://127.0.0.1:9',
    npm_config_fetch_retries: '0',
    npm_config_cache: join(root, 'cache'),
  };
  const { code, stderr } = await install(root, { env });
  expect(code).toBe(1);
  expect(stderr).toMatch(/ECONNREFUSED[\s\S]*\nerror: npm could not install .* "npm ci --prefix test"\n$/);
  expect(await installedVersion(tests)).toBe('1.0.0');
  expect((await readdir(tests)).sort()).toEqual(LEFT);
});

longTest(
  'in a checkout that may not be written it is an error who should install, and whole it is enough',
  async () => {
    const checkout = await makeCheckout();
    const { root, tests } = checkout;
    await lockVersion(checkout, '1.0.0');
    await chmod(tests, 0o555);
    // Root may write anywhere.
    const as = IS_ROOT ? { uid: 65_534 } : {};
    const refused = await install(root, as);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^Installing.*\nerror: .*may not write .*EACCES.*"npm ci --prefix test" as the user/,
    );
    await chmod(tests, 0o755);
    await install(root);
    await chmod(tests, 0o555);
    expect(await install(root, as)).toEqual({ code: 0, stderr: '' });
    await chmod(tests, 0o755);
  },
);
