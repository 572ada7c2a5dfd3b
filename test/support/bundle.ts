import { chmod, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import type { BuildOptions } from 'esbuild';

/**
 * Bundles a program with its packages. A process spends more time on finding and reading their files than on its work, and another user may
 * not have access to this checkout.
 */
export async function bundle(options: Pick<BuildOptions, 'entryPoints' | 'outdir' | 'outExtension' | 'external'>) {
  const esbuild = await import('esbuild');
  await esbuild.build({
    ...options,
    bundle: true,
    conditions: ['@quittance/source'],
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // CommonJS packages require Node's own modules at run time.
    banner: {
      js: "import { createRequire as createBundleRequire } from 'node:module'; const require = createBundleRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  await esbuild.stop();
}

/** Fills a folder that every user can read, unless it exists. If several workers do so at once, the first one wins. */
export async function fillOnce(folder: string, fill: (draft: string) => Promise<unknown>): Promise<void> {
  const isThere = () =>
    stat(folder).then(
      () => true,
      () => false,
    );
  if (await isThere()) return;
  const draft = await mkdtemp(`${folder}-`);
  await chmod(draft, 0o755);
  await fill(draft);
  try {
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true });
    if (!(await isThere())) throw error;
  }
}
