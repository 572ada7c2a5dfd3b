import { chmod, cp, mkdir, mkdtemp, readFile, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The parts of a checkout, besides its sources, that building, running and packing need. */
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
 * Copies the checkout as git has it, without a build but with every package. Any user can read it, and it's deleted after the test run.
 * `sources` selects parts of src/, because each file takes time to build.
 */
export async function copyCheckout(sources: readonly string[] = ['src', 'packages']): Promise<string> {
  const to = await newFolder();
  for (const name of [...PARTS, ...sources]) await cp(join(ROOT, name), join(to, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(to, 'node_modules'));
  return to;
}

/** Copies a copy including its build. */
export async function copyCopy(from: string): Promise<string> {
  const to = await newFolder();
  await cp(from, to, { recursive: true, verbatimSymlinks: true });
  return to;
}

/** Returns the packages that `npm ci --omit=dev` installs in node_modules/. */
export async function productionPackages(): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8'));
  const prefix = 'node_modules/';
  return Object.entries<{ dev?: boolean; devOptional?: boolean; link?: boolean }>(packages)
    .filter(([path, { dev, devOptional, link }]) => path.startsWith(prefix) && !dev && !devOptional && !link)
    .map(([path]) => path.slice(prefix.length))
    .filter((name) => !name.includes(`/${prefix}`));
}

/** Fills node_modules/ like `npm ci --omit=dev`. Links to packages for other platforms are dangling. */
export async function linkProductionPackages(folder: string): Promise<void> {
  for (const name of await productionPackages()) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), join(folder, name));
  }
}

/** Copies packages to a place where every user can read them. */
export async function copyPackages(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) await cp(join(ROOT, 'node_modules', name), join(folder, name), { recursive: true });
}

/** Creates a folder of the test run that every user can read. */
export async function newFolder(): Promise<string> {
  const path = await mkdtemp(join(inject('runDirectory'), 'checkout-'));
  await chmod(path, 0o755);
  return path;
}
