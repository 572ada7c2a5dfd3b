import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';

const ROOT = join(import.meta.dirname, '../..');
/** npm's output for a shop's hundreds of packages. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** `folder` is the shop's. */
export type Installed =
  | { kind: 'installed'; folder: string; remove(): Promise<void> }
  | { kind: 'missing'; reason: string };

/**
 * Packs a plugin and the SDK as for publishing, and installs both in a shop with the commands of docs/guides/plugins.md. The shop has the
 * packages of the plugin's lock file, in a temporary folder.
 */
export async function installPlugin(name: string): Promise<Installed> {
  const parent = await mkdtemp(join(tmpdir(), `plugin-${name}-`));
  const [plugin, shop] = [join(parent, 'plugins', name), join(parent, 'shop')];
  const remove = () => rm(parent, { recursive: true, force: true });
  const [program, ...first] = npmCommand();
  const run = (cwd: string, command: string, args: string[]) =>
    promisify(execFile)(command, args, { cwd, maxBuffer: MAX_OUTPUT_BYTES });
  const npm = (cwd: string, ...args: string[]) => run(cwd, program, [...first, ...args, '--silent']);
  const install = (cwd: string, ...args: string[]) =>
    npm(cwd, ...args, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund');
  const pack = async (folder: string, ...args: string[]) => (await npm(parent, 'pack', folder, ...args)).stdout.trim();
  try {
    await run(parent, process.execPath, [join(ROOT, 'build/package.js'), 'sdk']);
    const sdk = await pack(join(ROOT, 'packages/sdk'), '--ignore-scripts');
    await run(parent, 'tar', ['xzf', sdk]);
    await mkdir(join(parent, 'packages'));
    await rename(join(parent, 'package'), join(parent, 'packages/sdk'));
    await mkdir(plugin, { recursive: true });
    for (const file of ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'src'])
      await cp(join(ROOT, 'plugins', name, file), join(plugin, file), { recursive: true });
    const failed = await install(plugin, 'ci').then(
      () => null,
      (error: Error) => error.message,
    );
    if (failed !== null) {
      await remove();
      return { kind: 'missing', reason: `npm could not install the shop: ${failed.slice(0, 300)}` };
    }
    const packed = await pack(plugin);
    const { devDependencies } = JSON.parse(await readFile(join(plugin, 'package.json'), 'utf8'));
    const { '@quittance/sdk': _, ...dependencies } = devDependencies;
    await mkdir(shop);
    await writeFile(join(shop, 'package.json'), JSON.stringify({ name: 'shop', private: true, dependencies }));
    await rename(join(plugin, 'node_modules'), join(shop, 'node_modules'));
    await rm(join(shop, 'node_modules/@quittance'), { recursive: true });
    await cp(join(plugin, '.npmrc'), join(shop, '.npmrc'));
    await install(shop, 'install', join(parent, sdk), join(parent, packed));
    // Removes everything that isn't in the packages.
    for (const folder of [plugin, join(parent, 'packages/sdk')]) await rm(folder, { recursive: true });
    return { kind: 'installed', folder: shop, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
