import { execFile } from 'node:child_process';
import { access, cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** What a benchmark loads from a release instead of running its command. */
const SERVICE_MODULE = 'dist/server/service.js';

/** Returns the path of the release's service.js. `command` is its bin/quittance.js. */
export function serviceModuleOf(command: string): string {
  return join(dirname(command), '..', SERVICE_MODULE);
}

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
    await access(join(folder, SERVICE_MODULE));
    for (const name of ['migrations', 'deploy', 'public']) await symlink(join(ROOT, name), join(folder, name));
    return { command: join(folder, 'bin', 'quittance.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
