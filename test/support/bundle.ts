import { chmod, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import type { BuildOptions } from 'esbuild';

/**
 * Builds a program with its packages in it, because a process spends more on finding and reading their files than on its work, and
 * because who starts it as another user need not reach this checkout.
 */
export async function bundle(options: Pick<BuildOptions, 'entryPoints' | 'outdir' | 'outExtension' | 'external'>) {
  const esbuild = await import('esbuild');
  await esbuild.build({
    ...options,
    bundle: true,
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

/** Fills the folder, which every user can read, if it is not there. Of several workers that do so at once, the first one wins. */
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
