import { chmod, cp, mkdir, mkdtemp, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** What a checkout needs beside its sources in order to build, to run and to be packed. */
const PARTS = [
  'bin',
  'build',
  'migrations',
  'public',
  'package.json',
  'LICENSE',
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
];

/**
 * Copies the checkout as git has it, not built, with every package. Any user can read it; it goes with the test run. `sources`: what of src/,
 * for each file takes its time to build.
 */
export async function copyCheckout(sources: readonly string[] = ['src']): Promise<string> {
  const to = await newFolder();
  for (const name of [...PARTS, ...sources]) await cp(join(ROOT, name), join(to, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(to, 'node_modules'));
  return to;
}

/** Copies a copy, with what was built in it. */
export async function copyCopy(from: string): Promise<string> {
  const to = await newFolder();
  await cp(from, to, { recursive: true, verbatimSymlinks: true });
  return to;
}

/** The names of the packages that `npm ci --omit=dev` installs in the folder node_modules/. */
export async function productionPackages(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'));
  const prefix = 'node_modules/';
  return Object.entries<{ dev?: boolean; devOptional?: boolean }>(packages)
    .filter(([path, { dev, devOptional }]) => path.startsWith(prefix) && !dev && !devOptional)
    .map(([path]) => path.slice(prefix.length))
    .filter((name) => !name.includes(`/${prefix}`));
}

/** Fills a folder node_modules/ as `npm ci --omit=dev` would. Those for other platforms lead nowhere. */
export async function linkProductionPackages(folder: string): Promise<void> {
  for (const name of await productionPackages()) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(folder, name));
  }
}

/** Copies packages to where every user can read them. */
export async function copyPackages(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) await cp(join(ROOT, 'node_modules', name), join(folder, name), { recursive: true });
}

/** A folder of the test run that every user can read. */
export async function newFolder(): Promise<string> {
  const path = await mkdtemp(join(inject('runDirectory'), 'checkout-'));
  await chmod(path, 0o755);
  return path;
}
