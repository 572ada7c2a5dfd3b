import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * Builds the release in a folder inside `parent`, which must lie in the checkout so that its packages are found.
 * The checkout's own dist/, if there is one, is left alone. `command` is the release's bin/quittance.js.
 */
export async function buildRelease(parent: string): Promise<{ command: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(parent, 'release-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
    const outDir = join(folder, 'dist');
    await promisify(execFile)(process.execPath, [tsc, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', outDir]);
    for (const name of ['bin', 'package.json']) await cp(join(ROOT, name), join(folder, name), { recursive: true });
    for (const name of ['migrations', 'public']) await symlink(join(ROOT, name), join(folder, name));
    return { command: join(folder, 'bin', 'quittance.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
