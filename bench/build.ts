import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * Builds the release in a folder inside `parent`, which must be in the checkout so that Node.js finds its packages. The build stays the
 * same while sources change. `command` is the release's bin/quittance.js.
 */
export async function buildRelease(parent: string): Promise<{ command: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(parent, 'release-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    await promisify(execFile)(process.execPath, [join(ROOT, 'bin/quittance.js'), '--version']);
    for (const name of ['bin', 'dist', 'package.json'])
      await cp(join(ROOT, name), join(folder, name), { recursive: true });
    for (const name of ['migrations', 'deploy', 'public']) await symlink(join(ROOT, name), join(folder, name));
    return { command: join(folder, 'bin', 'quittance.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
